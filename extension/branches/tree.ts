// The Branches view: sessions, their branches, and each one's changed files. Reads the model; asks for changes only of what
// is open.
import * as vscode from 'vscode';
import type { Branch } from '../../helper/protocol/rpc.js';
import { registerCommand, showError } from '../commands/run.js';
import { toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { pathKey } from '../diff/paths.js';
import { ChangeReader } from './changes.js';
import { BranchNode, FileChangeNode, MoreNode, ProblemNode, WorkspaceNode, type TreeNode } from './nodes.js';
import { Reviewed } from './reviewed.js';
import { isActive, isSession } from './state.js';

export const VIEW = 'bough.branches';

class BranchTree implements vscode.TreeDataProvider<TreeNode> {
  private readonly changed = new vscode.EventEmitter<TreeNode | undefined>();
  private readonly changes: ChangeReader;
  private readonly reviewed: Reviewed;
  private shownState = '';
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly context: BoughContext) {
    this.changes = new ChangeReader(context.helper);
    this.reviewed = new Reviewed(context.helper, context.everyWindowState);
    context.own(this.changed);
    context.own(
      context.model.onDidChange(() => {
        this.changes.keepOnly(context.model.branches);
        const { branches, workspaces, problem } = context.model;
        if (!problem)
          this.reviewed.forgetDiscarded(
            branches,
            workspaces.map(({ folder }) => folder),
          );
        // Reading the tree again makes rows unknown for a moment: not without a reason.
        const state = JSON.stringify([workspaces.map((each) => [each.folder, each.problem]), branches, problem?.line]);
        if (state !== this.shownState) this.changed.fire(undefined);
        this.shownState = state;
      }),
    );
  }

  getTreeItem(node: TreeNode): vscode.TreeItem {
    if (node.kind !== 'branch') return node.item();
    const { branch } = node;
    return node.item(branch.changes !== 0 || this.context.model.children(branch).length > 0);
  }

  async getChildren(node?: TreeNode): Promise<TreeNode[]> {
    const { model } = this.context;
    if (!node) {
      const problems = model.problem ? [new ProblemNode('helper', model.problem.line)] : [];
      const [only, ...others] = model.workspaces;
      if (only && others.length === 0) return [...problems, ...this.workspaceChildren(new WorkspaceNode(only))];
      const used = model.workspaces.filter(({ branches, problem }) => branches.length > 0 || problem);
      return [...problems, ...used.map((workspace) => new WorkspaceNode(workspace))];
    }
    switch (node.kind) {
      case 'workspace':
        return this.workspaceChildren(node);
      case 'branch':
        return this.branchChildren(node);
      default:
        return [];
    }
  }

  /** The person ticked rows, or took the tick away. */
  async review(ticked: readonly (readonly [FileChangeNode, boolean])[]): Promise<void> {
    for (const [{ branch, change }, reviewed] of ticked) await this.reviewed.mark(branch, change, reviewed);
    this.changed.fire(undefined);
  }

  async showMore(node: MoreNode): Promise<void> {
    await this.changes.more(node.branch);
    this.changed.fire(undefined);
  }

  private workspaceChildren({ workspace }: WorkspaceNode): TreeNode[] {
    const problems = workspace.problem
      ? [new ProblemNode(workspace.folder, `${workspace.problem.message} (${workspace.problem.code})`)]
      : [];
    return [...problems, ...workspace.branches.filter(isSession).map((branch) => this.branchNode(branch))];
  }

  private branchNode(branch: Branch): BranchNode {
    return new BranchNode(branch, this.reviewed.count(branch));
  }

  private async branchChildren({ branch }: BranchNode): Promise<TreeNode[]> {
    const branches = this.context.model.children(branch).map((child) => this.branchNode(child));
    if (branch.changes === 0) return branches;
    try {
      const { changes, total } = await this.changes.shown(branch);
      const before = this.reviewed.count(branch);
      const reviewed = await this.reviewed.stillSo(branch, changes, changes.length === total);
      // The branch's own row says how many.
      if (this.reviewed.count(branch) !== before) this.changed.fire(undefined);
      const files = changes.map((change) => new FileChangeNode(branch, change, reviewed.has(pathKey(change.path))));
      const more = total > changes.length ? [new MoreNode(branch, changes.length, total)] : [];
      return [...branches, ...files, ...more];
    } catch (error) {
      // Tried again at the next occasion.
      this.shownState = '';
      return [...branches, new ProblemNode(branch.id, toBoughError(error).line)];
    }
  }
}

export function registerTree(context: BoughContext): void {
  const tree = new BranchTree(context);
  const view = context.own(
    vscode.window.createTreeView(VIEW, {
      treeDataProvider: tree,
      showCollapseAll: true,
      canSelectMany: true,
      manageCheckboxStateManually: true,
    }),
  );
  registerCommand('bough.showMoreChanges', 'Show More Changes', context, async () => {
    // The row that was clicked is the selected one.
    for (const node of view.selection) if (node instanceof MoreNode) await tree.showMore(node);
  });
  context.own(
    view.onDidChangeCheckboxState(({ items }) => {
      const ticked = items.flatMap(([node, state]) =>
        node instanceof FileChangeNode ? [[node, state === vscode.TreeItemCheckboxState.Checked] as const] : [],
      );
      tree.review(ticked).catch((error: unknown) => showError(context, 'Mark as Reviewed', error));
    }),
  );
  // Opening the view is the person's wish to see branches: only then is a helper started that nothing else needed.
  context.own(view.onDidChangeVisibility(({ visible }) => (visible ? void context.model.refresh() : undefined)));
  if (view.visible) void context.model.refresh();
  context.own(
    context.model.onDidChange(() => {
      const active = context.model.branches.filter(isActive).length;
      view.badge = active > 0 ? { value: active, tooltip: `${active} running` } : undefined;
      void vscode.commands.executeCommand('setContext', 'bough.hasBranches', context.model.branches.length > 0);
    }),
  );
}
