// What the person sees when a commit meets changes of the parent: which files, why, and what can be done with each. Used by
// commit.ts and rebase.
import * as vscode from 'vscode';
import type { Conflict } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import type { BoughContext } from '../context.js';
import { pathLabel } from '../diff/paths.js';
import { branchSide } from '../diff/sides.js';
import { toUri } from '../diff/uri.js';
import { withProgress } from './run.js';

const WORDS: Readonly<Record<Conflict['reason'], string>> = {
  'both-changed': 'changed on both sides',
  'added-in-both': 'added on both sides',
  'deleted-in-parent': 'deleted in the parent, changed in the branch',
  'changed-in-parent': 'changed in the parent, deleted in the branch',
  type: 'of another type in the parent',
  'parent-missing': 'its folder is gone in the parent',
};

const RESOLVE = 'Resolve Each…';
const KEEP = "Keep the Branch's Version";
const TAKE = "Take the Parent's Version";

function listed(conflicts: readonly Conflict[]): string {
  const shown = conflicts.slice(0, 8).map(({ path, reason }) => `${pathLabel(path)}: ${WORDS[reason]}`);
  const rest = conflicts.length - shown.length;
  return [...shown, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n');
}

async function resolveAll(
  context: BoughContext,
  branch: Branch,
  conflicts: readonly Conflict[],
  take: 'ours' | 'theirs',
): Promise<void> {
  await withProgress(`Resolving ${conflicts.length} conflicts of ${branch.name}`, async ({ token, report }) => {
    for (const { path } of conflicts) {
      if (token.isCancellationRequested) throw new vscode.CancellationError();
      report(pathLabel(path));
      await context.helper.request('bough/resolve', { branch: branch.id, path, take });
    }
  });
}

/** The built-in merge editor: base, the parent's and the branch's version, the result in the branch's own file. */
async function openMerge(context: BoughContext, branch: Branch, { path, base, ours }: Conflict): Promise<boolean> {
  const output = branchSide(branch, path, 'file');
  const side = (name: 'point' | 'branch' | 'parent') => toUri({ side: name, branch: branch.id, path });
  await vscode.commands.executeCommand('_open.mergeEditor', {
    base: base.type === null ? toUri({ side: 'empty', branch: branch.id, path }) : side('point'),
    input1: { uri: side('parent'), title: context.model.parentName(branch), description: 'parent' },
    input2: { uri: side('branch'), title: branch.name, description: ours.type === null ? 'deleted' : 'branch' },
    output,
  });
  const done = 'Use the Saved File';
  const pick = await vscode.window.showInformationMessage(
    `Merge ${pathLabel(path)} and save it; then say that the saved file is the result.`,
    done,
  );
  if (pick !== done) return false;
  const data = await vscode.workspace.fs.readFile(output);
  await context.helper.request('bough/resolve', {
    branch: branch.id,
    path,
    take: 'content',
    data: Buffer.from(data).toString('base64'),
  });
  return true;
}

async function openConflictDiff(
  context: BoughContext,
  branch: Branch,
  { path, ours, theirs }: Conflict,
): Promise<void> {
  const side = (there: boolean, name: 'branch' | 'parent') =>
    toUri({ side: there ? name : 'empty', branch: branch.id, path });
  await vscode.commands.executeCommand(
    'vscode.diff',
    side(theirs.type !== null, 'parent'),
    side(ours.type !== null, 'branch'),
    `${pathLabel(path)} (${context.model.parentName(branch)} ↔ ${branch.name})`,
  );
}

function canMerge({ base, ours, theirs }: Conflict): boolean {
  const text = [base, ours, theirs].every((side) => !side.binary && (side.type === 'file' || side.type === null));
  return text && ours.type === 'file' && theirs.type === 'file';
}

/** One file after the other until none is left. @returns true when all are resolved. */
async function resolveEach(context: BoughContext, branch: Branch): Promise<boolean> {
  for (;;) {
    const { conflicts } = await context.helper.request('bough/conflicts', { branch: branch.id });
    if (conflicts.length === 0) return true;
    const file = await vscode.window.showQuickPick(
      conflicts.map((conflict) => ({ label: pathLabel(conflict.path), description: WORDS[conflict.reason], conflict })),
      { title: `${branch.name}: ${conflicts.length} conflicts`, placeHolder: 'File to resolve' },
    );
    if (!file) return false;
    const { conflict } = file;
    const merge = 'Open Merge Editor';
    const diff = 'Open Diff (decide later)';
    const how = await vscode.window.showQuickPick(canMerge(conflict) ? [merge, KEEP, TAKE, diff] : [KEEP, TAKE, diff], {
      title: file.label,
      placeHolder: 'How to resolve it',
    });
    if (how === undefined) return false;
    if (how === diff) {
      await openConflictDiff(context, branch, conflict);
      return false;
    }
    if (how === merge) {
      if (!(await openMerge(context, branch, conflict))) return false;
    } else {
      await resolveAll(context, branch, [conflict], how === KEEP ? 'ours' : 'theirs');
    }
  }
}

/**
 * Tells of the conflicts and lets the person resolve them.
 * @returns true when all are resolved, so that what met them can be done again.
 */
export async function resolveConflicts(
  context: BoughContext,
  branch: Branch,
  conflicts: readonly Conflict[],
  doing: string,
): Promise<boolean> {
  const pick = await vscode.window.showWarningMessage(
    `${doing}: ${branch.name} and ${context.model.parentName(branch)} changed the same files (E_CONFLICT)`,
    { modal: true, detail: `Nothing was changed yet.\n\n${listed(conflicts)}` },
    RESOLVE,
    KEEP,
    TAKE,
  );
  if (pick === undefined) return false;
  if (pick === RESOLVE) return resolveEach(context, branch);
  await resolveAll(context, branch, conflicts, pick === KEEP ? 'ours' : 'theirs');
  return true;
}
