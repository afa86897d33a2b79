// "Bough: Branch Agent Here": how many, a hint for each, and the file and selection in front go along.
import * as vscode from 'vscode';
import type { Branch } from '../../helper/protocol/rpc.js';
import { isLive } from '../branches/state.js';
import type { BoughContext } from '../context.js';
import { relativeInside } from '../diff/paths.js';
import { pickAgent, startableAgents, type StartableAgent } from './agents.js';
import { pickBranch } from './pick.js';
import { assertTrusted, registerCommand, withProgress } from './run.js';

const MOST_BRANCHES = 16;
/** More of a selection than this is not a hint any more; the agent reads the file. */
const SELECTION_CHARACTERS = 2000;

async function askCount(): Promise<number> {
  const text = await vscode.window.showInputBox({
    title: 'Branch Agent Here: How Many',
    prompt: 'How many branches?',
    value: String(vscode.workspace.getConfiguration('bough').get<number>('branch.count', 3)),
    validateInput: (value) =>
      /^[0-9]+$/.test(value.trim()) && Number(value) >= 1 && Number(value) <= MOST_BRANCHES
        ? undefined
        : `A number from 1 to ${MOST_BRANCHES}`,
  });
  if (text === undefined) throw new vscode.CancellationError();
  return Number(text);
}

async function askHints(count: number): Promise<readonly string[]> {
  const hints: string[] = [];
  for (let n = 1; n <= count; n++) {
    const hint = await vscode.window.showInputBox({
      title: `Branch Agent Here: branch ${n} of ${count}`,
      prompt: `Hint for branch ${n} (Enter alone: none)`,
      placeHolder: 'What this branch should try',
    });
    if (hint === undefined) throw new vscode.CancellationError();
    hints.push(hint.trim());
  }
  return hints;
}

/** A shell takes no hint: its branches may be worked on by an agent instead. Undefined: the parent's own. */
async function askAgent(context: BoughContext, parent: Branch): Promise<StartableAgent | undefined> {
  const agents = await startableAgents(context, parent.workspace);
  const own = agents.find(({ id }) => id === parent.agent);
  if (!own || own.takesHint) return own;
  // The parent's own first: Enter alone branches what runs.
  const others = agents.filter((agent) => agent !== own);
  return pickAgent([own, ...others], 'Branch Agent Here: Agent', 'What goes on in the branches');
}

/** Where the person is, in words for an agent; undefined when no file of the branch or its folder is in front. */
function placeInFront(context: BoughContext, branch: Branch): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return undefined;
  const { document, selection } = editor;
  const file =
    context.model.fileInBranch(document.uri)?.path ??
    (document.uri.scheme === 'file' ? relativeInside(branch.workspace, document.uri.fsPath) : undefined);
  if (file === undefined) return undefined;
  if (selection.isEmpty) return `(looking at ${file}:${selection.active.line + 1})`;
  const lines = `${selection.start.line + 1}-${selection.end.line + 1}`;
  const text = document.getText(selection);
  if (text.length > SELECTION_CHARACTERS) return `(looking at ${file}:${lines})`;
  return `(looking at ${file}:${lines})\n${text}`;
}

export function registerBranchHere(context: BoughContext): void {
  registerCommand('bough.branchHere', 'Branch Agent Here', context, async (argument) => {
    assertTrusted();
    const branch = await pickBranch(context, argument, 'Branch Agent Here', isLive);
    const place = placeInFront(context, branch);
    const count = await askCount();
    const agent = await askAgent(context, branch);
    const hints = await askHints(count);
    const group = vscode.workspace
      .getConfiguration('bough')
      .get<'exclusive' | 'independent'>('branch.group', 'exclusive');
    const { branches } = await withProgress(`Branching ${branch.name}`, (watched) =>
      context.helper.request(
        'bough/branch',
        {
          branch: branch.id,
          count,
          // Without a hint of the person the place alone is no task.
          hints: hints.map((hint) => (place === undefined || hint === '' ? hint : `${hint}\n${place}`)),
          group,
          ...(agent && agent.id !== branch.agent ? { agent: agent.id } : {}),
          ...(agent?.command ? { command: agent.command } : {}),
        },
        watched,
      ),
    );
    await context.model.refresh();
    return branches.map(({ id }) => id);
  });
}
