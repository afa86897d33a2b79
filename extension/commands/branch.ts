// What is done with a whole branch besides committing it: discard, rebase, rename, take from a sibling, revert files.
import * as vscode from 'vscode';
import type { Branch } from '../../helper/protocol/rpc.js';
import { changeWords, isActive, isLive } from '../branches/state.js';
import { toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { pathLabel } from '../diff/paths.js';
import { resolveConflicts } from './conflicts.js';
import { calledOn, filesFrom, pickBranch } from './pick.js';
import { assertTrusted, registerCommand, withProgress } from './run.js';

/** Asks before anything is lost; a branch without changes, agent and branches of its own goes without a question. */
async function confirmDiscard(context: BoughContext, branch: Branch): Promise<void> {
  const below = context.model.children(branch).filter(({ fileState }) => fileState !== 'committed');
  const losses: string[] = [];
  if (branch.fileState !== 'committed' && branch.changes !== 0)
    losses.push(changeWords(branch.changes) ?? 'its changes');
  if (isActive(branch)) losses.push('its running agent');
  if (below.length > 0)
    losses.push(`${below.length} branches made from it (${below.map(({ name }) => name).join(', ')})`);
  if (losses.length === 0) return;
  const discard = 'Discard';
  const pick = await vscode.window.showWarningMessage(
    `Discard ${branch.name}?`,
    { modal: true, detail: `This is lost and cannot be undone: ${losses.join(', ')}.` },
    discard,
  );
  if (pick !== discard) throw new vscode.CancellationError();
}

async function discard(context: BoughContext, argument: unknown): Promise<void> {
  const branch = await pickBranch(context, argument, 'Discard', () => true);
  await context.model.refresh();
  await confirmDiscard(context, context.model.branch(branch.id) ?? branch);
  const recursive = context.model.children(branch).length > 0;
  await withProgress(`Discarding ${branch.name}`, (watched) =>
    context.helper.request('bough/abort', { branch: branch.id, ...(recursive ? { recursive } : {}) }, watched),
  );
  await context.model.refresh();
}

async function rebase(context: BoughContext, argument: unknown): Promise<void> {
  const branch = await pickBranch(context, argument, 'Rebase', ({ fileState }) => fileState !== 'committed');
  for (;;) {
    try {
      const { paths, merged } = await withProgress(`Rebasing ${branch.name}`, (watched) =>
        context.helper.request('bough/rebase', { branch: branch.id }, watched),
      );
      const mergedWords = merged.length > 0 ? ` Merged by lines: ${merged.map(pathLabel).join(', ')}.` : '';
      void vscode.window.showInformationMessage(
        `${branch.name} now stands on ${context.model.parentName(branch)} as it is: ${paths} paths.${mergedWords}`,
      );
      break;
    } catch (thrown) {
      const error = toBoughError(thrown);
      if (error.code !== 'E_CONFLICT' || error.conflicts.length === 0) throw thrown;
      if (!(await resolveConflicts(context, branch, error.conflicts, 'Rebase'))) break;
    }
  }
  await context.model.refresh();
}

async function rename(context: BoughContext, argument: unknown): Promise<void> {
  const branch = await pickBranch(context, argument, 'Rename Branch', () => true);
  const taken = new Set(context.model.siblings(branch).map(({ name }) => name));
  const name = await vscode.window.showInputBox({
    title: `Rename ${branch.name}`,
    prompt: 'New name',
    value: branch.name,
    validateInput: (value) =>
      value.trim() === '' ? 'A name is needed' : taken.has(value.trim()) ? 'A sibling has this name' : undefined,
  });
  if (name === undefined || name.trim() === branch.name) return;
  await context.helper.request('bough/rename', { branch: branch.id, name: name.trim() });
  await context.model.refresh();
}

async function revertFiles(context: BoughContext, argument: unknown, selection: unknown): Promise<void> {
  const { branch, paths } = filesFrom(context, argument, selection);
  const revert = 'Revert';
  const names = paths.slice(0, 5).map(pathLabel).join(', ');
  const pick = await vscode.window.showWarningMessage(
    `Revert ${paths.length === 1 ? names : `${paths.length} files`} in ${branch.name}?`,
    { modal: true, detail: `${names}${paths.length > 5 ? ', …' : ''} will be as when the branch was made.` },
    revert,
  );
  if (pick !== revert) return;
  await context.helper.request('bough/revert', { branch: branch.id, paths });
  await context.model.refresh();
}

async function takeFromSibling(context: BoughContext, argument: unknown, selection: unknown): Promise<void> {
  // On a sibling's changed file: it goes into a branch that the person picks.
  const { branch: from, paths } = filesFrom(context, argument, selection);
  const into = context.model.siblings(from).filter(isLive);
  const pick = await vscode.window.showQuickPick(
    into.map((branch) => ({ label: branch.name, description: branch.hint, branch })),
    {
      title: `Take ${paths.length === 1 ? paths.map(pathLabel).join() : `${paths.length} files`} of ${from.name} into`,
      placeHolder: 'Branch that receives it',
    },
  );
  if (!pick) return;
  const { taken } = await context.helper.request('bough/take', { branch: pick.branch.id, from: from.id, paths });
  void vscode.window.showInformationMessage(
    `${pick.label} took ${taken === 1 ? '1 path' : `${taken} paths`} of ${from.name}.`,
  );
  await context.model.refresh();
}

type Run = (context: BoughContext, argument: unknown, selection: unknown) => Promise<void>;

/** All of these change something. */
function trusted(context: BoughContext, run: Run): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    assertTrusted();
    await run(context, calledOn(args), args[1]);
  };
}

export function registerBranchCommands(context: BoughContext): void {
  registerCommand('bough.discard', 'Discard', context, trusted(context, discard));
  registerCommand('bough.rebase', 'Rebase', context, trusted(context, rebase));
  registerCommand('bough.rename', 'Rename Branch', context, trusted(context, rename));
  registerCommand('bough.revertFile', 'Revert File', context, trusted(context, revertFiles));
  registerCommand('bough.takeFromSibling', 'Take into Sibling', context, trusted(context, takeFromSibling));
}
