// The extension's entry: makes the context and wires the features to it, nothing more.
import type * as vscode from 'vscode';
import type { BoughApi } from './api.js';
import { registerDecorations } from './branches/decorations.js';
import { registerStatusBar } from './branches/statusBar.js';
import { registerTree } from './branches/tree.js';
import { registerBranchCommands } from './commands/branch.js';
import { registerBranchHere } from './commands/branchHere.js';
import { registerChecks } from './commands/checks.js';
import { registerCommit } from './commands/commit.js';
import { registerLog } from './commands/log.js';
import { registerStart } from './commands/start.js';
import { BoughContext } from './context.js';
import { registerBoughFiles } from './diff/boughFiles.js';
import { registerGutter } from './diff/gutter.js';
import { registerDiffs } from './diff/openDiff.js';
import { registerDoctor } from './doctor/doctor.js';
import { registerFolders } from './folders/openFolder.js';
import { registerHunks } from './review/hunkActions.js';
import { registerTerminals } from './terminal/terminals.js';

export function activate(extension: vscode.ExtensionContext): BoughApi {
  const context = new BoughContext(extension);
  extension.subscriptions.push(context);
  registerBoughFiles(context);
  registerTree(context);
  registerDecorations(context);
  registerStatusBar(context);
  registerStart(context);
  registerBranchHere(context);
  registerCommit(context);
  registerBranchCommands(context);
  registerChecks(context);
  registerDiffs(context);
  registerGutter(context);
  registerHunks(context);
  registerTerminals(context);
  registerFolders(context);
  registerDoctor(context);
  registerLog(context);
  // A helper that runs has something to show; one that does not run is started by the first use, not by every window.
  void context.helper.isRunning().then((running) => (running ? context.model.refresh() : undefined));
  return {
    version: 1,
    branches: () => context.model.branches,
    onDidChangeBranches: context.model.onDidChange,
    branchOf: (uri) => context.model.fileInBranch(uri),
  };
}
