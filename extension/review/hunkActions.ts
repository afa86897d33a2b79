// Hunk by hunk, on files in a branch's folder: "Accept Hunk" makes the change in the parent's file, "Revert Hunk" takes it
// back in the branch, "Take Hunk from Sibling" brings one of a sibling's here. Code actions always; CodeLens by the setting bough.hunks.codeLens. All are ordinary edits, so the
// editor's undo works; the branch's later commit merges what is the same on both sides.
import * as vscode from 'vscode';
import { BASE, isLive } from '../branches/state.js';
import { assertTrusted, registerCommand } from '../commands/run.js';
import { BoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import type { FileInBranch } from '../branches/model.js';
import { toUri } from '../diff/uri.js';
import { applyHunk, hunksOf, revertHunk, type Hunk } from './hunks.js';

/** A text larger than this is not looked at hunk by hunk. */
const MOST_CHARACTERS = 2_000_000;

async function textOf(side: 'point' | 'branch', branch: string, path: string): Promise<string | undefined> {
  try {
    const document = await vscode.workspace.openTextDocument(toUri({ side, branch, path }));
    return document.getText();
  } catch {
    // Not there on this side, or binary: there are no hunks.
    return undefined;
  }
}

function liveFile(context: BoughContext, document: vscode.TextDocument): FileInBranch | undefined {
  if (document.uri.scheme !== 'file') return undefined;
  const inside = context.model.fileInBranch(document.uri);
  return inside && isLive(inside.branch) ? inside : undefined;
}

async function hunksIn(inside: FileInBranch, document: vscode.TextDocument): Promise<readonly Hunk[]> {
  const now = document.getText();
  if (now.length > MOST_CHARACTERS) return [];
  const before = await textOf('point', inside.branch.id, inside.path);
  return before === undefined ? [] : hunksOf(before, now);
}

interface SiblingHunk extends vscode.QuickPickItem {
  readonly hunk: Hunk;
}

/** What siblings changed in the same file and this text has not, each against its own branch point. */
async function hunksOfSiblings(
  context: BoughContext,
  { branch, path }: FileInBranch,
  text: string,
): Promise<readonly SiblingHunk[]> {
  const found = await Promise.all(
    context.model
      .siblings(branch)
      .filter(({ changes }) => changes !== 0)
      .map(async (sibling) => {
        const [before, after] = await Promise.all([
          textOf('point', sibling.id, path),
          textOf('branch', sibling.id, path),
        ]);
        if (before === undefined || after === undefined || after.length > MOST_CHARACTERS) return [];
        return hunksOf(before, after)
          .filter((hunk) => revertHunk(text, hunk) === undefined)
          .map((hunk) => ({
            label: `${sibling.name}: line ${hunk.newStart + 1}`,
            description: sibling.hint.split('\n', 1)[0] ?? '',
            detail: changedLines(hunk),
            hunk,
          }));
      }),
  );
  return found.flat();
}

/** The hunk in one line. */
function changedLines({ patch }: Hunk): string {
  const lines = patch.lines
    .filter((line) => /^[+-]/.test(line))
    .map((line) => `${line[0] ?? ''} ${line.slice(1).trim()}`);
  const shown = lines.slice(0, 4).join('  ');
  return lines.length > 4 ? `${shown}  … ${lines.length - 4} more` : shown;
}

async function takeHunk(context: BoughContext, argument: unknown): Promise<void> {
  const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
  const document = uri && (await vscode.workspace.openTextDocument(uri));
  const inside = document && liveFile(context, document);
  if (!inside) throw notInFront();
  const hunks = await hunksOfSiblings(context, inside, document.getText());
  if (hunks.length === 0) {
    throw new BoughError(
      'E_NO_PATH',
      `No sibling of ${inside.branch.name} changed anything else in ${inside.path}.`,
      'There is nothing to take.',
    );
  }
  const pick = await vscode.window.showQuickPick(hunks, {
    title: `Take Hunk into ${inside.branch.name}`,
    placeHolder: `Changes of siblings in ${inside.path}`,
    matchOnDetail: true,
  });
  if (!pick) return;
  await replaceText(document.uri, (text) => applyHunk(text, pick.hunk));
}

function notInFront(): BoughError {
  return new BoughError(
    'E_NO_PATH',
    'No file in a live branch is in front.',
    'Open one with "Open Diff" or from the branch folder.',
  );
}

function rangeOf(hunk: Hunk, document: vscode.TextDocument): vscode.Range {
  const last = Math.max(0, document.lineCount - 1);
  const start = Math.min(hunk.newStart, last);
  const end = Math.min(hunk.newStart + Math.max(hunk.newLines, 1) - 1, last);
  return new vscode.Range(start, 0, end, document.lineAt(end).text.length);
}

/** The file in the parent that receives a hunk: on disk for the base, in its mounted folder for a branch. */
async function parentFile(context: BoughContext, { branch, path }: FileInBranch): Promise<vscode.Uri> {
  const folder =
    branch.parent === BASE
      ? branch.workspace
      : (await context.helper.request('bough/mount', { branch: branch.parent })).folder;
  return vscode.Uri.joinPath(vscode.Uri.file(folder), path);
}

async function replaceText(uri: vscode.Uri, change: (text: string) => string | undefined): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uri);
  const text = document.getText();
  const changed = change(text);
  if (changed === undefined) {
    throw new BoughError(
      'E_HUNK_STALE',
      `${uri.fsPath} changed at this place since.`,
      'Compare the files, then take the change by hand.',
    );
  }
  const wasDirty = document.isDirty;
  const edit = new vscode.WorkspaceEdit();
  edit.replace(uri, new vscode.Range(document.positionAt(0), document.positionAt(text.length)), changed);
  if (!(await vscode.workspace.applyEdit(edit))) {
    throw new BoughError('E_EXTENSION', `The editor refused the edit of ${uri.fsPath}.`);
  }
  // Unsaved edits of the person stay theirs to save.
  if (!wasDirty) await document.save();
}

interface HunkCommand {
  readonly uri: vscode.Uri;
  readonly line: number;
}

async function hunkAt(
  context: BoughContext,
  argument: unknown,
): Promise<{ inside: FileInBranch; hunk: Hunk; uri: vscode.Uri }> {
  const given = argument as Partial<HunkCommand> | undefined;
  const editor = vscode.window.activeTextEditor;
  const uri = given?.uri instanceof vscode.Uri ? given.uri : editor?.document.uri;
  const line = typeof given?.line === 'number' ? given.line : editor?.selection.active.line;
  const document = uri && (await vscode.workspace.openTextDocument(uri));
  const inside = document && liveFile(context, document);
  if (!inside || line === undefined) throw notInFront();
  const hunks = await hunksIn(inside, document);
  const hunk = hunks.find((candidate) => rangeOf(candidate, document).contains(new vscode.Position(line, 0)));
  if (!hunk)
    throw new BoughError(
      'E_NO_PATH',
      `Line ${line + 1} is not changed in ${inside.branch.name}.`,
      'Put the cursor into a changed line.',
    );
  return { inside, hunk, uri: document.uri };
}

export function registerHunks(context: BoughContext): void {
  registerCommand('bough.acceptHunk', 'Accept Hunk', context, async (argument) => {
    assertTrusted();
    const { inside, hunk } = await hunkAt(context, argument);
    await replaceText(await parentFile(context, inside), (text) => applyHunk(text, hunk));
    void vscode.window.setStatusBarMessage(`Hunk accepted into ${context.model.parentName(inside.branch)}`, 5000);
  });
  registerCommand('bough.revertHunk', 'Revert Hunk', context, async (argument) => {
    assertTrusted();
    const { hunk, uri } = await hunkAt(context, argument);
    await replaceText(uri, (text) => revertHunk(text, hunk));
  });
  registerCommand('bough.takeHunk', 'Take Hunk from Sibling', context, async (argument) => {
    assertTrusted();
    await takeHunk(context, argument);
  });

  context.own(
    vscode.languages.registerCodeActionsProvider(
      { scheme: 'file' },
      {
        async provideCodeActions(document, range) {
          const inside = liveFile(context, document);
          if (!inside) return [];
          const hunk = (await hunksIn(inside, document)).find((candidate) =>
            rangeOf(candidate, document).intersection(range),
          );
          if (!hunk) return [];
          const target: HunkCommand = { uri: document.uri, line: rangeOf(hunk, document).start.line };
          const action = (title: string, command: string, argument: HunkCommand | vscode.Uri) => {
            const made = new vscode.CodeAction(title, vscode.CodeActionKind.Empty.append('bough.hunk'));
            made.command = { title, command, arguments: [argument] };
            return made;
          };
          const actions = [
            action(`Accept Hunk into ${context.model.parentName(inside.branch)}`, 'bough.acceptHunk', target),
            action(`Revert Hunk in ${inside.branch.name}`, 'bough.revertHunk', target),
          ];
          return inside.branch.overlaps > 0
            ? [...actions, action('Take Hunk from Sibling…', 'bough.takeHunk', document.uri)]
            : actions;
        },
      },
      { providedCodeActionKinds: [vscode.CodeActionKind.Empty.append('bough.hunk')] },
    ),
  );

  const refreshLenses = context.own(new vscode.EventEmitter<void>());
  // Only when other files are in live branches than before: a click on a lens that is just being replaced would fail. The
  // editor itself asks again after each edit.
  let liveFolders = '';
  context.own(
    context.model.onDidChange(() => {
      const now = JSON.stringify(context.model.branches.filter(isLive).map(({ id, folder }) => [id, folder]));
      if (now !== liveFolders) refreshLenses.fire();
      liveFolders = now;
    }),
  );
  context.own(
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('bough.hunks.codeLens')) refreshLenses.fire();
    }),
  );
  context.own(
    vscode.languages.registerCodeLensProvider(
      { scheme: 'file' },
      {
        onDidChangeCodeLenses: refreshLenses.event,
        async provideCodeLenses(document) {
          if (!vscode.workspace.getConfiguration('bough').get<boolean>('hunks.codeLens', false)) return [];
          const inside = liveFile(context, document);
          if (!inside) return [];
          return (await hunksIn(inside, document)).flatMap((hunk) => {
            const range = rangeOf(hunk, document);
            const target: HunkCommand = { uri: document.uri, line: range.start.line };
            return [
              new vscode.CodeLens(range, { title: 'Accept Hunk', command: 'bough.acceptHunk', arguments: [target] }),
              new vscode.CodeLens(range, { title: 'Revert Hunk', command: 'bough.revertHunk', arguments: [target] }),
            ];
          });
        },
      },
    ),
  );
}
