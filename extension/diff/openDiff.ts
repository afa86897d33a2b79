// Open Diff: one changed file, all of a branch's changes, or two siblings. Opened only by the person's command. Used by
// commands and the tree.
import * as vscode from 'vscode';
import type { Change } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { ChangeReader } from '../branches/changes.js';
import { FileChangeNode } from '../branches/nodes.js';
import { BoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { pickBranch } from '../commands/pick.js';
import { registerCommand, withProgress } from '../commands/run.js';
import { pathKey, pathLabel } from './paths.js';
import { branchSide, diffCommand, sides, sidesAgainst, type Sides } from './sides.js';

/** More files than this at once freeze the multi-file diff: the rest is said, not shown. */
export const DIFF_LIMIT = 100;

async function openOne(branch: Branch, change: Change): Promise<void> {
  const diff = diffCommand(branch, change);
  await vscode.commands.executeCommand(diff.command, ...diff.arguments);
}

async function openMany(title: string, pairs: readonly (readonly [vscode.Uri, Sides])[]): Promise<void> {
  await vscode.commands.executeCommand(
    'vscode.changes',
    title,
    pairs.map(([uri, { before, after }]) => [uri, before, after]),
  );
}

function sayCapped(shown: number, total: number): void {
  if (total <= shown) return;
  void vscode.window.showInformationMessage(
    `The first ${shown} of ${total} changed files are open: more at once would freeze the editor. The Branches view lists all of them.`,
  );
}

async function changeAt(context: BoughContext, branch: Branch, path: string): Promise<Change> {
  const { changes } = await new ChangeReader(context.helper).upTo(branch, 5000);
  const change = changes.find((candidate) => pathKey(candidate.path) === path);
  if (!change)
    throw new BoughError('E_NO_PATH', `${path} is not changed in ${branch.name}.`, 'There is nothing to compare.');
  return change;
}

async function openDiff(context: BoughContext, argument: unknown): Promise<void> {
  if (argument instanceof FileChangeNode) return openOne(argument.branch, argument.change);
  const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
  const inside = uri && context.model.fileInBranch(uri);
  if (inside && inside.path !== '') return openOne(inside.branch, await changeAt(context, inside.branch, inside.path));
  const branch = await pickBranch(context, argument, 'Open Diff', (candidate) => candidate.changes !== 0);
  const { changes, total } = await new ChangeReader(context.helper).upTo(branch, 5000);
  const files = changes.filter((change) => change.type !== 'directory');
  const items = files.map((change) => ({ label: pathLabel(change.path), description: change.kind, change }));
  if (items.length === 0) {
    void vscode.window.showInformationMessage(`${branch.name} has no changed files.`);
    return;
  }
  const pick = await vscode.window.showQuickPick(items, {
    title: `Open Diff: ${branch.name}`,
    placeHolder: total > changes.length ? `The first ${changes.length} of ${total} changes` : 'Changed file',
  });
  if (pick) await openOne(branch, pick.change);
}

async function openAllDiffs(context: BoughContext, argument: unknown): Promise<void> {
  const branch = await pickBranch(context, argument, 'Open All Diffs', (candidate) => candidate.changes !== 0);
  const { changes, total } = await withProgress(`Reading the changes of ${branch.name}`, () =>
    new ChangeReader(context.helper).upTo(branch, DIFF_LIMIT),
  );
  const files = changes.filter((change) => change.type !== 'directory');
  if (files.length === 0) {
    const folders =
      changes.length > 0 ? ` (only folders: ${changes.map((change) => pathLabel(change.path)).join(', ')})` : '';
    void vscode.window.showInformationMessage(`${branch.name} has no changed files${folders}.`);
    return;
  }
  await openMany(
    `${branch.name}: ${total} changes`,
    files.map((change) => [branchSide(branch, change.path, change.type), sides(branch, change)]),
  );
  sayCapped(changes.length, total);
}

async function compareWithSibling(context: BoughContext, argument: unknown): Promise<void> {
  const branch = await pickBranch(
    context,
    argument,
    'Compare with Sibling',
    (candidate) => context.model.siblings(candidate).length > 0,
  );
  const siblings = context.model.siblings(branch);
  const items = siblings.map((sibling) => ({ label: sibling.name, description: sibling.hint, sibling }));
  const [only, ...others] = items;
  if (!only)
    throw new BoughError('E_NO_BRANCH', `${branch.name} has no sibling.`, 'Make some with "Bough: Branch Agent Here".');
  const pick =
    others.length === 0
      ? only
      : await vscode.window.showQuickPick(items, { title: `Compare ${branch.name} with`, placeHolder: 'Sibling' });
  if (!pick) return;
  const { sibling } = pick;
  const { changes, total } = await withProgress(`Comparing ${branch.name} with ${sibling.name}`, () =>
    new ChangeReader(context.helper).upTo(branch, DIFF_LIMIT, sibling.id),
  );
  const files = changes.filter((change) => change.type !== 'directory');
  if (files.length === 0) {
    void vscode.window.showInformationMessage(`${branch.name} and ${sibling.name} have the same files.`);
    return;
  }
  await openMany(
    `${sibling.name} ↔ ${branch.name}: ${total} differences`,
    files.map((change) => [branchSide(branch, change.path, change.type), sidesAgainst(sibling, branch, change)]),
  );
  sayCapped(changes.length, total);
}

export function registerDiffs(context: BoughContext): void {
  registerCommand('bough.openDiff', 'Open Diff', context, (argument) => openDiff(context, argument));
  registerCommand('bough.openAllDiffs', 'Open All Diffs', context, (argument) => openAllDiffs(context, argument));
  registerCommand('bough.compareWithSibling', 'Compare with Sibling', context, (argument) =>
    compareWithSibling(context, argument),
  );
}
