// Which folder, branch or file a command is about: from the row, editor or terminal it was called on, else by asking. Used
// by every command's file.
import * as vscode from 'vscode';
import type { WirePath } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { BranchNode, FileChangeNode } from '../branches/nodes.js';
import { describe } from '../branches/state.js';
import { BoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { branchOfTerminal } from '../terminal/terminals.js';

/** In place of a row: the command was called on one that the tree was just reading again, so nobody knows which. */
export const LOST_ROW = Symbol('a row that is no more');

/**
 * What a command that changes something was called on. The editor hands over a row that went meanwhile as nothing, which
 * must not be taken for "called without a row": the branch or file in front would be meant instead.
 */
export function calledOn(args: readonly unknown[]): unknown {
  return args.length > 0 && (args[0] === undefined || args[0] === null) ? LOST_ROW : args[0];
}

/** The branch that a command's argument names: a row of the tree, an editor's address, or an id (by other extensions). */
export function branchFrom(context: BoughContext, argument: unknown): Branch | undefined {
  const { model } = context;
  if (argument instanceof BranchNode || argument instanceof FileChangeNode) {
    return model.branch(argument.branch.id) ?? argument.branch;
  }
  if (argument instanceof vscode.Uri) return model.fileInBranch(argument)?.branch;
  if (typeof argument === 'string') return model.branch(argument);
  return undefined;
}

/** The branch in front: of the active editor, else of the active terminal. */
export function branchInFront(context: BoughContext): Branch | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  const ofEditor = uri && context.model.fileInBranch(uri)?.branch;
  if (ofEditor) return ofEditor;
  const terminal = vscode.window.activeTerminal;
  const id = terminal && branchOfTerminal(terminal);
  return id === undefined ? undefined : context.model.branch(id);
}

interface BranchItem extends vscode.QuickPickItem {
  readonly branch: Branch;
}

/**
 * The branch to act on.
 * @param suits which branches the command can do something with.
 * @throws BoughError E_NO_BRANCH when there is none; CancellationError when the person turns away.
 */
export async function pickBranch(
  context: BoughContext,
  argument: unknown,
  title: string,
  suits: (branch: Branch) => boolean,
): Promise<Branch> {
  const named = branchFrom(context, argument);
  if (named) return named;
  await context.model.refresh();
  const front = argument === LOST_ROW ? undefined : branchInFront(context);
  if (front && suits(front)) return front;
  const fitting = context.model.branches.filter(suits);
  const [only, ...others] = fitting;
  if (!only) {
    throw (
      context.model.problem ??
      new BoughError('E_NO_BRANCH', 'There is no branch for this.', 'Begin with "Bough: Start Agent".')
    );
  }
  if (others.length === 0 && argument !== LOST_ROW) return only;
  const items = fitting.map((branch): BranchItem => ({ label: branch.name, description: describe(branch), branch }));
  const pick = await vscode.window.showQuickPick(items, { title, placeHolder: 'Branch', matchOnDescription: true });
  if (!pick) throw new vscode.CancellationError();
  return pick.branch;
}

/** The workspace folder to start in. Folders of branches are not among them: an agent there is a branch, not a session. */
export async function pickFolder(context: BoughContext, title: string): Promise<string> {
  const folders = (vscode.workspace.workspaceFolders ?? []).filter(
    ({ uri }) => uri.scheme === 'file' && !context.model.branches.some((branch) => branch.folder === uri.fsPath),
  );
  const [only, ...others] = folders;
  if (!only) {
    const behind = context.model.workspaces[0];
    if (behind) return behind.folder;
    throw new BoughError(
      'E_NO_FOLDER',
      'No folder is open.',
      'Open the folder that agents should work in ("File: Open Folder").',
    );
  }
  if (others.length === 0) return only.uri.fsPath;
  const items = folders.map(({ name, uri }) => ({ label: name, description: uri.fsPath, folder: uri.fsPath }));
  const pick = await vscode.window.showQuickPick(items, { title, placeHolder: 'Folder to branch from' });
  if (!pick) throw new vscode.CancellationError();
  return pick.folder;
}

export interface FilesOfBranch {
  readonly branch: Branch;
  readonly paths: readonly WirePath[];
}

/** The changed files that a command is about: selected rows of one branch, or the file in front. */
export function filesFrom(context: BoughContext, argument: unknown, selection: unknown): FilesOfBranch {
  if (argument instanceof FileChangeNode) {
    const rows = Array.isArray(selection) ? selection : [];
    const chosen = rows.filter(
      (row): row is FileChangeNode => row instanceof FileChangeNode && row.branch.id === argument.branch.id,
    );
    const nodes = chosen.includes(argument) ? chosen : [argument];
    return { branch: argument.branch, paths: nodes.map((node) => node.path) };
  }
  if (argument === LOST_ROW) {
    throw new BoughError(
      'E_NO_PATH',
      'The list was being read again, so the chosen file is not known.',
      'Nothing was done: choose it once more.',
    );
  }
  const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
  const inside = uri && context.model.fileInBranch(uri);
  if (!inside) {
    throw new BoughError(
      'E_NO_PATH',
      'No file of a branch is chosen.',
      'Choose a changed file in the Branches view, or open one first.',
    );
  }
  return { branch: inside.branch, paths: [inside.path] };
}
