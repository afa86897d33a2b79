// "Bough: Start Agent": pick an agent or a shell, say the task where it takes one; its terminal opens in the editor.
import * as vscode from 'vscode';
import type { BoughContext } from '../context.js';
import { showTerminal } from '../terminal/terminals.js';
import { pickAgent, startableAgents, type StartableAgent } from './agents.js';
import { pickBranch, pickFolder } from './pick.js';
import { assertTrusted, registerCommand, withProgress } from './run.js';

/** No network unless the person says so: by the setting, or when they start an agent that is of no use without one. */
async function mayUseNetwork(agent: StartableAgent, folder: string): Promise<boolean> {
  const setting = vscode.workspace.getConfiguration('bough', vscode.Uri.file(folder));
  if (setting.get<boolean>('agent.network', false)) return true;
  if (!agent.asksModel) return false;
  const yes = { label: 'With the network', detail: 'It reaches its model, and whatever else this machine reaches.' };
  const no = { label: 'Without a network', detail: 'It can work on the files and nothing else.' };
  const pick = await vscode.window.showQuickPick([yes, no], {
    title: `Start ${agent.title}`,
    placeHolder: `${agent.title} asks a model. May it use the network in this session?`,
  });
  if (!pick) throw new vscode.CancellationError();
  return pick === yes;
}

export function registerStart(context: BoughContext): void {
  registerCommand('bough.start', 'Start Agent', context, async () => {
    assertTrusted();
    const folder = await pickFolder(context, 'Start Agent');
    const agents = await startableAgents(context, folder);
    const agent = await pickAgent(agents, 'Start Agent', 'Agent or shell to start in a branch of this folder');
    const hint = agent.takesHint
      ? await vscode.window.showInputBox({
          title: `Start ${agent.title}`,
          prompt: 'Task for the agent (Enter alone: none)',
          placeHolder: 'For example: make the failing test pass',
        })
      : '';
    if (hint === undefined) throw new vscode.CancellationError();
    const network = await mayUseNetwork(agent, folder);
    const branch = await withProgress(`Starting ${agent.title}`, (watched) =>
      context.helper.request(
        'bough/start',
        {
          folder,
          agent: agent.id,
          network,
          ...(agent.command ? { command: agent.command } : {}),
          ...(hint === '' ? {} : { hint }),
        },
        watched,
      ),
    );
    await context.model.refresh();
    showTerminal(context, branch, !agent.takesHint);
    return branch.id;
  });

  registerCommand('bough.showTerminal', 'Show Terminal', context, async (argument) => {
    assertTrusted();
    const branch = await pickBranch(
      context,
      argument,
      'Show Terminal',
      (candidate) => candidate.terminal !== undefined,
    );
    showTerminal(context, branch, true);
  });

  registerCommand('bough.stop', 'Stop Agent', context, async (argument) => {
    assertTrusted();
    const branch = await pickBranch(context, argument, 'Stop Agent', (candidate) => candidate.person === 'running');
    await withProgress(`Stopping ${branch.name}`, (watched) =>
      context.helper.request('bough/stop', { branch: branch.id }, watched),
    );
    await context.model.refresh();
  });
}
