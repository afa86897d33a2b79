// The rows of the Branches view: a branch, a changed file, "more", a problem. Each knows how it looks and how a screen
// reader says it; nothing is told by colour alone. Used by tree.ts.
import * as vscode from 'vscode';
import type { Change, WirePath } from '../../helper/protocol/boughfs.js';
import type { Branch, Workspace } from '../../helper/protocol/rpc.js';
import { baseName, folderName, pathKey, pathLabel } from '../diff/paths.js';
import { diffCommand } from '../diff/sides.js';
import { toUri } from '../diff/uri.js';
import { checkVerdict, contextValue, describe, isSession, overlapWords, stateWords } from './state.js';

/** Marks an address as a row of the tree, for decorations.ts: the letter stands in the query. */
export const ROW_QUERY = 'row=';

function branchIcon(branch: Branch): vscode.ThemeIcon {
  const color = (id: string) => new vscode.ThemeColor(id);
  if (branch.fileState === 'superseded') return new vscode.ThemeIcon('circle-slash', color('disabledForeground'));
  if (branch.fileState === 'committed') return new vscode.ThemeIcon('git-merge', color('charts.purple'));
  switch (branch.person) {
    case 'running':
      return new vscode.ThemeIcon('play-circle', color('charts.blue'));
    case 'committing':
      return new vscode.ThemeIcon('sync', color('charts.blue'));
    case 'paused':
      return new vscode.ThemeIcon('debug-pause', color('charts.yellow'));
    case 'failed':
      return new vscode.ThemeIcon('error', color('charts.red'));
    default:
      break;
  }
  switch (checkVerdict(branch)) {
    case 'passed':
      return new vscode.ThemeIcon('pass', color('testing.iconPassed'));
    case 'failed':
      return new vscode.ThemeIcon('testing-failed-icon', color('testing.iconFailed'));
    default:
      return new vscode.ThemeIcon('git-branch');
  }
}

export class WorkspaceNode {
  readonly kind = 'workspace';
  constructor(readonly workspace: Workspace) {}

  get id(): string {
    return `workspace ${this.workspace.folder}`;
  }

  item(): vscode.TreeItem {
    const item = new vscode.TreeItem(
      vscode.Uri.file(this.workspace.folder).path.split('/').pop() ?? this.workspace.folder,
      vscode.TreeItemCollapsibleState.Expanded,
    );
    item.id = this.id;
    item.iconPath = new vscode.ThemeIcon('root-folder');
    item.tooltip = this.workspace.folder;
    item.contextValue = 'workspace';
    return item;
  }
}

export class BranchNode {
  readonly kind = 'branch';
  constructor(
    readonly branch: Branch,
    /** How many of its changed files the person ticked. */
    readonly reviewed: number,
  ) {}

  get id(): string {
    return `branch ${this.branch.id}`;
  }

  item(hasChildren: boolean): vscode.TreeItem {
    const { branch } = this;
    const words = this.reviewed > 0 ? `${describe(branch)} · ${this.reviewed} reviewed` : describe(branch);
    const item = new vscode.TreeItem(
      branch.name,
      hasChildren
        ? isSession(branch)
          ? vscode.TreeItemCollapsibleState.Expanded
          : vscode.TreeItemCollapsibleState.Collapsed
        : vscode.TreeItemCollapsibleState.None,
    );
    item.id = this.id;
    item.description = words;
    item.iconPath = branchIcon(branch);
    item.contextValue = contextValue(branch);
    item.tooltip = this.tooltip();
    item.resourceUri = toUri({ side: 'branch', branch: branch.id, path: '' }).with({ query: `${ROW_QUERY}branch` });
    item.accessibilityInformation = {
      label: `${isSession(branch) ? 'Session' : 'Branch'} ${branch.name}, ${words}`,
    };
    return item;
  }

  private tooltip(): vscode.MarkdownString {
    const { branch } = this;
    const tip = new vscode.MarkdownString();
    const line = (title: string, value: string) => tip.appendText(`${title}: ${value}`).appendMarkdown('  \n');
    line(isSession(branch) ? 'Session' : 'Branch', branch.name);
    line('Agent', `${branch.agent} (${branch.machine === 'process' ? 'process isolation' : 'microVM'})`);
    line('State', stateWords(branch));
    if (branch.note !== null) line('Note', branch.note);
    if (branch.hint !== '') line('Hint', branch.hint);
    if (branch.group !== 0) line('Group', branch.exclusive ? 'first commit wins' : 'independent');
    if (branch.checks) {
      line('Checks', `${branch.checks.command}: ${branch.checks.state}`);
      const tail = branch.checks.output.trimEnd().split('\n').slice(-8).join('\n');
      if (tail !== '') tip.appendCodeblock(tail, 'text');
    }
    const overlaps = overlapWords(branch);
    if (overlaps !== undefined) line('Overlaps', overlaps);
    if (branch.folder !== undefined) line('Folder', branch.folder);
    return tip;
  }
}

const KIND_WORDS = { added: 'added', modified: 'modified', deleted: 'deleted', renamed: 'renamed' } as const;

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

/** What a plain diff of text would not show: mode, link target, binary, line ends, folder. */
function changeDetails(change: Change): string[] {
  const details: string[] = [];
  if (change.type === 'directory') details.push('folder');
  else if (change.type === 'symlink') details.push(change.target ? `link to ${change.target.after}` : 'link');
  else if (change.type !== 'file') details.push(change.type);
  if (change.from !== undefined) details.push(`from ${pathLabel(change.from)}`);
  if (change.what.includes('type')) details.push('type changed');
  if (change.what.includes('mode') && change.kind !== 'added' && change.kind !== 'deleted') {
    details.push(`mode ${octal(change.mode.before)} → ${octal(change.mode.after)}`);
  }
  if (change.what.includes('owner')) details.push('owner');
  if (change.what.includes('xattr')) details.push('extended attributes');
  if (change.binary) details.push('binary');
  if (change.lineEndingOnly) details.push('line endings only');
  return details;
}

export class FileChangeNode {
  readonly kind = 'change';
  constructor(
    readonly branch: Branch,
    readonly change: Change,
    /** The person ticked it, and the file is still as it was then. */
    readonly reviewed: boolean,
  ) {}

  get path(): WirePath {
    return this.change.path;
  }

  get id(): string {
    return `change ${this.branch.id} ${pathKey(this.change.path)}`;
  }

  item(): vscode.TreeItem {
    const { change, branch } = this;
    const item = new vscode.TreeItem(baseName(change.path), vscode.TreeItemCollapsibleState.None);
    const details = changeDetails(change);
    item.id = this.id;
    item.description = [folderName(change.path), KIND_WORDS[change.kind], ...details]
      .filter((word) => word !== '')
      .join(' · ');
    item.resourceUri = toUri({ side: 'branch', branch: branch.id, path: change.path }).with({
      query: ROW_QUERY + change.kind,
    });
    // The themed folder icon is empty in some icon themes.
    item.iconPath = change.type === 'directory' ? new vscode.ThemeIcon('symbol-folder') : vscode.ThemeIcon.File;
    item.tooltip = `${pathLabel(change.path)} · ${[KIND_WORDS[change.kind], ...details].join(', ')}`;
    item.contextValue = `change ${branch.fileState} ${change.kind}`;
    const words = [KIND_WORDS[change.kind], ...details, `in branch ${branch.name}`];
    if (this.reviewed) words.push('reviewed');
    item.accessibilityInformation = { label: `${pathLabel(change.path)}, ${words.join(', ')}` };
    const { Checked, Unchecked } = vscode.TreeItemCheckboxState;
    item.checkboxState = {
      state: this.reviewed ? Checked : Unchecked,
      tooltip: this.reviewed ? 'Reviewed' : 'Mark as reviewed (until the file changes)',
      accessibilityInformation: { label: `Reviewed ${pathLabel(change.path)}`, role: 'checkbox' },
    };
    if (change.type !== 'directory') item.command = diffCommand(branch, change);
    return item;
  }
}

export class MoreNode {
  readonly kind = 'more';
  constructor(
    readonly branch: Branch,
    readonly shown: number,
    readonly total: number,
  ) {}

  get id(): string {
    return `more ${this.branch.id}`;
  }

  item(): vscode.TreeItem {
    const item = new vscode.TreeItem(`Show more (${this.shown} of ${this.total} changes shown)`);
    item.id = this.id;
    item.iconPath = new vscode.ThemeIcon('ellipsis');
    item.contextValue = 'more';
    // Without arguments: those live only until the tree is read again, and a click in that moment would fail.
    item.command = { command: 'bough.showMoreChanges', title: 'Show More' };
    return item;
  }
}

export class ProblemNode {
  readonly kind = 'problem';
  constructor(
    readonly where: string,
    readonly message: string,
  ) {}

  get id(): string {
    return `problem ${this.where}`;
  }

  item(): vscode.TreeItem {
    const item = new vscode.TreeItem(this.message);
    item.id = this.id;
    item.iconPath = new vscode.ThemeIcon('warning');
    item.tooltip = this.message;
    item.contextValue = 'problem';
    item.accessibilityInformation = { label: `Problem: ${this.message}` };
    item.command = { command: 'bough.doctor', title: 'Open Doctor' };
    return item;
  }
}

export type TreeNode = WorkspaceNode | BranchNode | FileChangeNode | MoreNode | ProblemNode;
