// The extension's picture of the helper's state: workspaces and branches, read again whenever the helper says so. Nothing
// here is kept beyond the window. Used by every feature.
import * as vscode from 'vscode';
import type { Branch, Workspace } from '../../helper/protocol/rpc.js';
import { toBoughError, type BoughError } from '../connection/error.js';
import type { Helper } from '../connection/helper.js';
import { relativeInside } from '../diff/paths.js';
import { fromUri } from '../diff/uri.js';

export interface FileInBranch {
  readonly branch: Branch;
  /** Relative to the branch's folder. */
  readonly path: string;
}

/** As they were made; those of one group by their numbers. */
function inOrder(a: Branch, b: Branch): number {
  return a.createdMs - b.createdMs || a.name.localeCompare(b.name, 'en', { numeric: true });
}

export class BranchModel implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[] = [];
  private byFolder = new Map<string, Workspace>();
  private byId = new Map<string, Branch>();
  private reading: Promise<void> | undefined;
  private again = false;
  private failure: BoughError | undefined;

  /** After each reading that brought anything new. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly helper: Helper,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables.push(
      helper.onDidConnect(() => void this.refresh()),
      helper.onDidChange(() => void this.refresh()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => {
        if (this.byFolder.size > 0) void this.refresh();
      }),
    );
  }

  get workspaces(): readonly Workspace[] {
    return [...this.byFolder.values()];
  }

  get branches(): readonly Branch[] {
    return [...this.byId.values()];
  }

  /** Why the last reading failed. */
  get problem(): BoughError | undefined {
    return this.failure;
  }

  branch(id: string): Branch | undefined {
    return this.byId.get(id);
  }

  workspace(folder: string): Workspace | undefined {
    return this.byFolder.get(folder);
  }

  children(parent: Branch): readonly Branch[] {
    return this.branches
      .filter((branch) => branch.workspace === parent.workspace && branch.parent === parent.id)
      .sort(inOrder);
  }

  siblings(of: Branch): readonly Branch[] {
    return this.branches.filter(
      (branch) => branch.workspace === of.workspace && branch.parent === of.parent && branch.id !== of.id,
    );
  }

  /** Where a branch commits to, in words. */
  parentName(branch: Branch): string {
    return this.branch(branch.parent)?.name ?? 'your folder';
  }

  /** The branch that this file belongs to, by its mounted folder or its `bough:` address, and where in it. */
  fileInBranch(uri: vscode.Uri): FileInBranch | undefined {
    const address = fromUri(uri);
    if (address && typeof address.path === 'string') {
      const branch = this.byId.get(address.branch);
      return branch && { branch, path: address.path };
    }
    if (uri.scheme !== 'file') return undefined;
    for (const branch of this.byId.values()) {
      if (branch.folder === undefined) continue;
      const path = relativeInside(branch.folder, uri.fsPath);
      if (path !== undefined) return { branch, path };
    }
    return undefined;
  }

  /** Reads everything again; calls that come while a reading runs share one more reading after it. */
  refresh(): Promise<void> {
    if (this.reading) {
      this.again = true;
      return this.reading;
    }
    this.reading = (async () => {
      try {
        do {
          this.again = false;
          await this.read();
        } while (this.mustReadAgain());
      } finally {
        this.reading = undefined;
      }
      this.changed.fire();
    })();
    return this.reading;
  }

  /** A method, because it changes while a reading waits. */
  private mustReadAgain(): boolean {
    return this.again;
  }

  private async read(): Promise<void> {
    try {
      const known = (await this.helper.request('bough/workspaces', {})).workspaces;
      const mounts = known.flatMap((workspace) =>
        workspace.branches.flatMap((branch) => (branch.folder === undefined ? [] : [branch.folder])),
      );
      const byFolder = new Map<string, Workspace>();
      for (const folder of vscode.workspace.workspaceFolders ?? []) {
        if (folder.uri.scheme !== 'file') continue;
        const own = folder.uri.fsPath;
        const mount = mounts.find((at) => at === own || relativeInside(at, own) !== undefined);
        const workspace =
          mount === undefined
            ? await this.open(own)
            : known.find((candidate) => candidate.branches.some((branch) => branch.folder === mount));
        if (workspace) byFolder.set(workspace.folder, workspace);
      }
      this.byFolder = byFolder;
      this.byId = new Map(
        [...byFolder.values()].flatMap(({ branches }) => branches.map((branch) => [branch.id, branch])),
      );
      this.failure = undefined;
    } catch (error) {
      this.failure = toBoughError(error);
      this.log.error(`reading the branches failed: ${this.failure.line}`);
    }
  }

  /** One folder that cannot be branched must not hide the others. */
  private async open(folder: string): Promise<Workspace | undefined> {
    try {
      return await this.helper.request('bough/open', { folder });
    } catch (thrown) {
      const error = toBoughError(thrown);
      if (/^E_(HELPER_|NO_HELPER)/.test(error.code)) throw error;
      // A branch that is gone but still open in the editor.
      if (error.code === 'E_IS_BRANCH') return undefined;
      const message = error.fix === undefined ? error.message : `${error.message} ${error.fix}`;
      return { folder, branches: [], commits: [], store: null, problem: { code: error.code, message } };
    }
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
    this.changed.dispose();
  }
}
