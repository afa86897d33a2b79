// One status bar item: the branch of the file in front, or how many branches there are. Click: the Branches view.
import * as vscode from 'vscode';
import type { BoughContext } from '../context.js';
import { describe, isActive } from './state.js';
import { VIEW } from './tree.js';

export function registerStatusBar(context: BoughContext): void {
  const item = context.own(vscode.window.createStatusBarItem('bough.status', vscode.StatusBarAlignment.Left, 50));
  item.name = 'Bough';
  item.command = `${VIEW}.focus`;

  const show = () => {
    const { model } = context;
    const uri = vscode.window.activeTextEditor?.document.uri;
    const inside = uri && model.fileInBranch(uri);
    void vscode.commands.executeCommand('setContext', 'bough.inBranch', inside !== undefined);
    if (inside) {
      item.text = `$(git-branch) ${inside.branch.name}`;
      item.tooltip = `This file is in branch ${inside.branch.name}: ${describe(inside.branch)}`;
    } else {
      const running = model.branches.filter(isActive).length;
      item.text = running > 0 ? `$(git-branch) ${running} running` : `$(git-branch) ${model.branches.length}`;
      item.tooltip = `Bough: ${model.branches.length} branches, ${running} running`;
    }
    item.accessibilityInformation = { label: typeof item.tooltip === 'string' ? item.tooltip : 'Bough' };
    if (model.branches.length > 0) item.show();
    else item.hide();
  };
  context.own(context.model.onDidChange(show));
  context.own(vscode.window.onDidChangeActiveTextEditor(show));
  show();
}
