// "Commit to Parent", whole or of chosen files, and "Undo". Atomic in the helper; here are the questions before and the
// words after.
import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import type { WirePath } from '../../helper/protocol/boughfs.js';
import type { Branch, Requests } from '../../helper/protocol/rpc.js';
import { isLive } from '../branches/state.js';
import { BoughError, toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { pathLabel } from '../diff/paths.js';
import { resolveConflicts } from './conflicts.js';
import { calledOn, filesFrom, pickBranch } from './pick.js';
import { assertTrusted, registerCommand, showError, withProgress } from './run.js';

type Committed = Requests['bough/commit'][1];

/** Unsaved edits in the branch's files or in the folder it commits to would be missed or lost. */
async function saveEdits(context: BoughContext, branch: Branch): Promise<void> {
  const dirty = vscode.workspace.textDocuments.filter(
    ({ isDirty, uri }) => isDirty && context.model.fileInBranch(uri)?.branch.id === branch.id,
  );
  for (const document of dirty) {
    if (!(await document.save())) {
      throw new BoughError(
        'E_UNSAVED',
        `${document.fileName} could not be saved.`,
        'Save or revert it, then commit again.',
      );
    }
  }
}

/** The message of the git commit that goes with it, by the setting bough.commit.git; undefined: none. */
async function gitMessage(branch: Branch, partial: boolean): Promise<string | undefined> {
  const setting = vscode.workspace.getConfiguration('bough').get<'never' | 'ask' | 'always'>('commit.git', 'never');
  if (setting === 'never') return undefined;
  const summary = branch.hint.split('\n', 1)[0] ?? '';
  const message = `${summary === '' ? `Commit ${branch.name}` : summary}\n\nFrom branch ${branch.name}${partial ? ', some files' : ''}.`;
  if (setting === 'always') return message;
  const typed = await vscode.window.showInputBox({
    title: `Commit ${branch.name} to git as well`,
    prompt: 'Message of the git commit (empty: no git commit)',
    value: message.split('\n', 1)[0] ?? '',
  });
  if (typed === undefined) throw new vscode.CancellationError();
  return typed.trim() === '' ? undefined : typed;
}

function sayCommitted(context: BoughContext, branch: Branch, result: Committed): void {
  const words = [
    `Committed ${branch.name} to ${context.model.parentName(branch)}: ${result.paths === 1 ? '1 path' : `${result.paths} paths`}.`,
  ];
  if (result.merged.length > 0) words.push(`Merged by lines: ${result.merged.map(pathLabel).join(', ')}.`);
  if (result.superseded.length > 0) {
    words.push(
      result.superseded.length === 1
        ? '1 sibling is superseded.'
        : `${result.superseded.length} siblings are superseded.`,
    );
  }
  if (result.gitCommit !== null) words.push(`Git commit ${result.gitCommit.slice(0, 8)}.`);
  if (result.gitProblem !== null) words.push(`Git made no commit: ${result.gitProblem}`);
  if (result.notApplied.length > 0) {
    words.push(
      `Not applied: ${result.notApplied.map(({ path, what, why }) => `${what} of ${pathLabel(path)} (${why})`).join(', ')}.`,
    );
  }
  const undo = 'Undo';
  void vscode.window.showInformationMessage(words.join(' '), undo).then((pick) => {
    if (pick === undo) void vscode.commands.executeCommand('bough.undo', branch.workspace, result.commit);
  });
}

async function commit(context: BoughContext, branch: Branch, paths: readonly WirePath[] | undefined): Promise<void> {
  await saveEdits(context, branch);
  const message = await gitMessage(branch, paths !== undefined);
  // The same id in every attempt: a repeat after a lost answer is not a second commit.
  const operation = randomUUID();
  for (let attempt = 0; ; attempt++) {
    try {
      const result = await withProgress(`Committing ${branch.name}`, (watched) =>
        context.helper.request(
          'bough/commit',
          {
            branch: branch.id,
            operation: `${operation}-${attempt}`,
            ...(paths ? { paths } : {}),
            ...(message === undefined ? {} : { git: { message } }),
          },
          watched,
        ),
      );
      sayCommitted(context, branch, result);
      break;
    } catch (thrown) {
      const error = toBoughError(thrown);
      if (error.code !== 'E_CONFLICT' || error.conflicts.length === 0) throw thrown;
      await context.model.refresh();
      if (!(await resolveConflicts(context, branch, error.conflicts, 'Commit to Parent'))) break;
    }
  }
  await context.model.refresh();
}

async function undo(context: BoughContext, folder: unknown, commitId: unknown): Promise<void> {
  let where = typeof folder === 'string' ? folder : undefined;
  let which = typeof commitId === 'string' ? commitId : undefined;
  if (where === undefined || which === undefined) {
    await context.model.refresh();
    const undoable = context.model.workspaces.flatMap((workspace) =>
      workspace.commits.filter((made) => made.undoable).map((made) => ({ workspace, made })),
    );
    undoable.sort((a, b) => b.made.atMs - a.made.atMs);
    if (undoable.length === 0) throw new BoughError('E_NO_COMMIT', 'There is no commit to undo.');
    const items = undoable.map(({ workspace, made }) => ({
      label: context.model.branch(made.branch)?.name ?? made.branch,
      description: `${new Date(made.atMs).toLocaleString()}, ${made.paths} paths`,
      workspace,
      made,
    }));
    const pick =
      items.length === 1
        ? items[0]
        : await vscode.window.showQuickPick(items, { title: 'Undo', placeHolder: 'Commit to undo' });
    if (!pick) throw new vscode.CancellationError();
    where = pick.workspace.folder;
    which = pick.made.commit;
  }
  const params = { folder: where, commit: which };
  const { paths } = await withProgress('Undoing the commit', (watched) =>
    context.helper.request('bough/undo', params, watched),
  );
  void vscode.window.showInformationMessage(
    `Undone: ${paths === 1 ? '1 path is' : `${paths} paths are`} as before the commit.`,
  );
  await context.model.refresh();
}

export function registerCommit(context: BoughContext): void {
  const committable = (branch: Branch) => isLive(branch) && branch.changes !== 0;
  registerCommand('bough.commit', 'Commit to Parent', context, async (...args) => {
    assertTrusted();
    const branch = await pickBranch(context, calledOn(args), 'Commit to Parent', committable);
    try {
      await commit(context, branch, undefined);
    } catch (thrown) {
      await context.model.refresh();
      showError(context, 'Commit to Parent', thrown);
    }
  });
  registerCommand('bough.commitFiles', 'Commit Files to Parent', context, async (...args) => {
    assertTrusted();
    const { branch, paths } = filesFrom(context, calledOn(args), args[1]);
    await commit(context, branch, paths);
  });
  registerCommand('bough.undo', 'Undo', context, async (folder, commitId) => {
    assertTrusted();
    await undo(context, folder, commitId);
  });
}
