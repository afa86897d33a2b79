// The shapes of boughfs' control protocol (docs/boughfs-protocol.md). Used by helper/files, by faces that pass them on, and by
// the extension. Imports nothing.

/** A path below the base; bytes that are not UTF-8 travel as base64. */
export type WirePath = string | { readonly b64: string };

export type BranchState = 'live' | 'committed' | 'superseded';
export type FileType = 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'char' | 'block';
export type Side = 'branch' | 'point' | 'parent';

export interface BranchInfo {
  readonly id: string;
  readonly parent: string;
  readonly name: string;
  /** 0: made alone. */
  readonly group: number;
  readonly exclusive: boolean;
  readonly state: BranchState;
  readonly createdMs: number;
  readonly children: readonly string[];
  readonly mount?: string;
  /** The folder of the branch that the mount shows; absent: all of it. */
  readonly mountPath?: WirePath;
  /** Grows with every change; equal: a diff read earlier still holds. */
  readonly edits: number;
  readonly committedInto?: string;
  readonly commit?: string;
}

export type ChangeKind = 'added' | 'modified' | 'deleted' | 'renamed';
export type ChangeWhat = 'content' | 'mode' | 'owner' | 'xattr' | 'target' | 'type';

export interface Change {
  readonly path: WirePath;
  readonly kind: ChangeKind;
  readonly type: FileType;
  readonly from?: WirePath;
  /** Percent, for `renamed`. */
  readonly similarity?: number;
  readonly what: readonly ChangeWhat[];
  readonly binary: boolean;
  readonly lineEndingOnly: boolean;
  readonly size: { readonly before: number; readonly after: number };
  readonly mode: { readonly before: number; readonly after: number };
  readonly target?: { readonly before: string; readonly after: string };
}

export interface DiffResult {
  readonly changes: readonly Change[];
  readonly total: number;
  readonly drift: { readonly changed: readonly WirePath[]; readonly others: number };
}

export interface FileStat {
  readonly type: FileType;
  readonly size: number;
  readonly mode: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly uid: number;
  readonly gid: number;
  readonly target?: string;
}

export interface ConflictSide {
  readonly type: FileType | null;
  readonly size: number;
  readonly mode: number;
  readonly binary: boolean;
}

export interface Conflict {
  readonly path: WirePath;
  readonly reason:
    'both-changed' | 'added-in-both' | 'deleted-in-parent' | 'changed-in-parent' | 'type' | 'parent-missing';
  readonly base: ConflictSide;
  readonly ours: ConflictSide;
  readonly theirs: ConflictSide;
}

export interface CommitResult {
  readonly commit: string;
  readonly into: string;
  readonly paths: number;
  readonly superseded: readonly string[];
  readonly partial: boolean;
  readonly notApplied: readonly { readonly path: WirePath; readonly what: string; readonly why: string }[];
  readonly tookUs: number;
}

export interface CommitInfo {
  readonly commit: string;
  readonly branch: string;
  readonly into: string;
  readonly atMs: number;
  readonly paths: number;
  readonly undoable: boolean;
}

export interface StoreStatus {
  readonly bytes: number;
  readonly objects: number;
  readonly logBytes: number;
  readonly branches: number;
  readonly mounts: number;
  readonly commits: number;
  readonly freeBytes: number;
}

export type BoughfsEvent =
  | { readonly event: 'branch'; readonly branch: BranchInfo }
  | { readonly event: 'gone'; readonly branches: readonly string[] }
  | { readonly event: 'edits'; readonly branch: string; readonly edits: number }
  | { readonly event: 'drift' };
