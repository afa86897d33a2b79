// Open Branch as Workspace Folder: the branch's mounted folder beside the others, so that search, language servers and
// tests work in it. Always appended: putting a folder first would restart more than it must.
import * as vscode from 'vscode';
import { pickBranch } from '../commands/pick.js';
import { assertTrusted, registerCommand } from '../commands/run.js';
import { isLive } from '../branches/state.js';
import { BoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { folderWasLost, type Opening } from './lostFolders.js';

const OPENING = 'bough.openingFolder';

/** Loads a window again that came back from Open Branch as Workspace Folder without its folders; once. */
async function bringFoldersBack(context: BoughContext): Promise<void> {
  const file = vscode.workspace.workspaceFile;
  const opening = context.everyWindowState.get<Opening>(OPENING);
  if (!file || !opening) return;
  const shown = vscode.workspace.workspaceFolders?.length ?? 0;
  const content = shown > 0 ? '' : new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  const lost = folderWasLost(opening, shown, content, Date.now());
  await context.everyWindowState.update(OPENING, undefined);
  if (!lost) return;
  context.log.warn(`the window came back without its folders: it is loaded again (${file.toString()})`);
  await vscode.commands.executeCommand('workbench.action.reloadWindow');
}

export function registerFolders(context: BoughContext): void {
  bringFoldersBack(context).catch((error: unknown) => context.log.warn(`looking for lost folders: ${String(error)}`));
  registerCommand('bough.openFolder', 'Open Branch as Workspace Folder', context, async (argument) => {
    assertTrusted();
    const branch = await pickBranch(context, argument, 'Open Branch as Workspace Folder', isLive);
    const { folder } = await context.helper.request('bough/mount', { branch: branch.id });
    const uri = vscode.Uri.file(folder);
    const folders = vscode.workspace.workspaceFolders ?? [];
    if (folders.some((open) => open.uri.toString() === uri.toString())) return;
    await context.everyWindowState.update(OPENING, { folder, atMs: Date.now() } satisfies Opening);
    // From one folder to two, the editor restarts its extensions: nothing may be left to do after this line.
    if (!vscode.workspace.updateWorkspaceFolders(folders.length, 0, { uri, name: `${branch.name} (branch)` })) {
      throw new BoughError(
        'E_EXTENSION',
        `The editor refused to add ${folder}.`,
        'Add it with "Workspaces: Add Folder to Workspace".',
      );
    }
  });

  // A branch that is gone takes its folder out of the workspace, or the editor would show a broken one.
  let known = new Map<string, string>();
  context.own(
    context.model.onDidChange(() => {
      if (context.model.problem) return;
      const now = new Map(
        context.model.branches.flatMap((branch) => (branch.folder ? [[branch.folder, branch.id] as const] : [])),
      );
      const gone = [...known].filter(([, id]) => !context.model.branch(id)).map(([folder]) => folder);
      known = now;
      const folders = vscode.workspace.workspaceFolders ?? [];
      const index = folders.findIndex(({ uri }) => uri.scheme === 'file' && gone.includes(uri.fsPath));
      if (index > 0) vscode.workspace.updateWorkspaceFolders(index, 1);
    }),
  );
}
