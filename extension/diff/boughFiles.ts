// The read-only file system `bough:`: the base side of diffs, branches that are not mounted, and dead branches. Contents
// come from the helper byte for byte; a symbolic link reads as its target.
import * as vscode from 'vscode';
import type { FileStat, Side } from '../../helper/protocol/boughfs.js';
import { toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { fromUri, SCHEME, type Address } from './uri.js';

const NOT_THERE = new Set(['E_NO_PATH', 'E_NO_BRANCH']);

function fileType(type: FileStat['type']): vscode.FileType {
  switch (type) {
    case 'directory':
      return vscode.FileType.Directory;
    case 'file':
    case 'symlink':
      // A link is a small text here (its target): following it would leave the branch.
      return vscode.FileType.File;
    default:
      return vscode.FileType.Unknown;
  }
}

export class BoughFiles implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  private readonly watched = new Map<string, { uri: vscode.Uri; count: number }>();
  private readonly edits = new Map<string, number>();
  private readonly subscription: vscode.Disposable;

  readonly onDidChangeFile = this.changed.event;

  constructor(private readonly context: BoughContext) {
    this.subscription = context.model.onDidChange(() => this.tellChanges());
  }

  watch(uri: vscode.Uri): vscode.Disposable {
    const key = uri.toString();
    const entry = this.watched.get(key) ?? { uri, count: 0 };
    entry.count++;
    this.watched.set(key, entry);
    return new vscode.Disposable(() => {
      if (--entry.count === 0) this.watched.delete(key);
    });
  }

  /** Open documents of a branch that changed are read again by the editor. */
  private tellChanges(): void {
    const moved = new Set<string>();
    for (const branch of this.context.model.branches) {
      const before = this.edits.get(branch.id);
      if (before !== undefined && before !== branch.edits) moved.add(branch.id);
      this.edits.set(branch.id, branch.edits);
    }
    if (moved.size === 0) return;
    const events: vscode.FileChangeEvent[] = [];
    for (const { uri } of this.watched.values()) {
      const address = fromUri(uri);
      if (!address || address.side === 'empty') continue;
      const parent = this.context.model.branch(address.branch)?.parent ?? '';
      if (moved.has(address.branch) || moved.has(parent)) events.push({ type: vscode.FileChangeType.Changed, uri });
    }
    if (events.length > 0) this.changed.fire(events);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const address = this.parse(uri);
    if (!address) return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: 0 };
    const stat = await this.helperStat(uri, address);
    return {
      type: fileType(stat.type),
      ctime: Math.trunc(stat.ctimeMs),
      mtime: Math.trunc(stat.mtimeMs),
      size: stat.target === undefined ? stat.size : Buffer.byteLength(stat.target),
      permissions: vscode.FilePermission.Readonly,
    };
  }

  async readDirectory(uri: vscode.Uri): Promise<[string, vscode.FileType][]> {
    const address = this.parse(uri);
    if (!address) throw vscode.FileSystemError.FileNotADirectory(uri);
    const { side, branch, path } = address;
    try {
      const { entries } = await this.context.helper.request('bough/readdir', { side, branch, path });
      return entries.flatMap(({ name, type }): [string, vscode.FileType][] =>
        // A name that is not UTF-8 has no place in an explorer; it is reachable from the changed files.
        typeof name === 'string' ? [[name, fileType(type)]] : [],
      );
    } catch (error) {
      throw asFileSystemError(uri, error);
    }
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const address = this.parse(uri);
    if (!address) return new Uint8Array();
    const stat = await this.helperStat(uri, address);
    if (stat.type === 'symlink') return new TextEncoder().encode(stat.target ?? '');
    if (stat.type === 'directory') throw vscode.FileSystemError.FileIsADirectory(uri);
    if (stat.type !== 'file')
      throw vscode.FileSystemError.Unavailable(`${uri.path} is a ${stat.type}: it has no content.`);
    const { side, branch, path } = address;
    try {
      const { data } = await this.context.helper.request('bough/read', { side, branch, path });
      return Buffer.from(data, 'base64');
    } catch (error) {
      throw asFileSystemError(uri, error);
    }
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  /** @returns undefined for the empty side. */
  private parse(uri: vscode.Uri): Address<Side> | undefined {
    const address = fromUri(uri);
    if (!address) throw vscode.FileSystemError.FileNotFound(uri);
    const { side, branch, path } = address;
    return side === 'empty' ? undefined : { side, branch, path };
  }

  private async helperStat(uri: vscode.Uri, { side, branch, path }: Address<Side>): Promise<FileStat> {
    try {
      return await this.context.helper.request('bough/stat', { side, branch, path });
    } catch (error) {
      throw asFileSystemError(uri, error);
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }
}

function asFileSystemError(uri: vscode.Uri, thrown: unknown): vscode.FileSystemError {
  const error = toBoughError(thrown);
  if (NOT_THERE.has(error.code)) return vscode.FileSystemError.FileNotFound(uri);
  return vscode.FileSystemError.Unavailable(error.line);
}

export function registerBoughFiles(context: BoughContext): void {
  const files = context.own(new BoughFiles(context));
  context.own(vscode.workspace.registerFileSystemProvider(SCHEME, files, { isCaseSensitive: true, isReadonly: true }));
}
