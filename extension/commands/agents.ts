// The agents that a person may start: the helper's presets and their own of the setting bough.agents. Used by start.ts and
// branchHere.ts.
import * as vscode from 'vscode';
import type { AgentPreset } from '../../helper/protocol/rpc.js';
import { BoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';

export interface StartableAgent extends AgentPreset {
  /** Of the person's own agents. */
  readonly command?: readonly string[];
}

/** Settings are written by hand: what has another shape is left out and said in the log. */
function ownAgents(context: BoughContext, folder: string): readonly StartableAgent[] {
  const setting = vscode.workspace
    .getConfiguration('bough', vscode.Uri.file(folder))
    .get<Readonly<Record<string, unknown>>>('agents', {});
  return Object.entries(setting).flatMap(([id, command]): StartableAgent[] => {
    const words: readonly unknown[] = Array.isArray(command) ? command : [];
    if (words.length === 0 || !words.every((word) => typeof word === 'string')) {
      context.log.warn(`bough.agents: "${id}" is not a list of words and is left out`);
      return [];
    }
    // A task goes along in any case: in the place of {hint}, or as $BOUGH_HINT.
    return [{ id, title: id, takesHint: true, asksModel: true, command: words }];
  });
}

export async function startableAgents(context: BoughContext, folder: string): Promise<readonly StartableAgent[]> {
  const { agents } = await context.helper.request('bough/agents', { folder });
  return [...agents, ...ownAgents(context, folder)];
}

interface AgentItem extends vscode.QuickPickItem {
  readonly agent: StartableAgent;
}

/** Lets the person pick; those that cannot start come last and say why. */
export async function pickAgent(
  agents: readonly StartableAgent[],
  title: string,
  placeHolder: string,
): Promise<StartableAgent> {
  const items = agents
    .map((agent): AgentItem => ({
      label: agent.title,
      description: agent.command?.join(' ') ?? agent.id,
      ...(agent.missing === undefined ? {} : { detail: `Not available: ${agent.missing}` }),
      agent,
    }))
    .sort((a, b) => Number(a.agent.missing !== undefined) - Number(b.agent.missing !== undefined));
  const pick = await vscode.window.showQuickPick(items, { title, placeHolder, matchOnDescription: true });
  if (!pick) throw new vscode.CancellationError();
  if (pick.agent.missing !== undefined) {
    throw new BoughError('E_NO_AGENT', `${pick.agent.title} cannot start.`, pick.agent.missing);
  }
  return pick.agent;
}
