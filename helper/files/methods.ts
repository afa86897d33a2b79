// The methods of boughfs' control socket with their parameters and results (docs/boughfs-protocol.md). Used by the client in
// boughfs.ts and by the services above it.
import type {
  BranchInfo,
  CommitInfo,
  CommitResult,
  Conflict,
  DiffResult,
  FileStat,
  FileType,
  Side,
  StoreStatus,
  WirePath,
} from '../protocol/boughfs.js';

type None = Record<string, never>;

interface At {
  readonly branch: string;
  readonly side: Side;
  readonly path: WirePath;
}

export interface Methods {
  hello: [
    None,
    {
      readonly version: string;
      readonly store: string;
      readonly base: string;
      readonly pid: number;
      readonly branches: number;
    },
  ];
  'branch.create': [
    {
      readonly parent: string;
      readonly count: number;
      readonly group: 'exclusive' | 'independent';
      readonly names?: readonly string[];
      /** Write dirty pages of shared mappings back first: a file that is written through mmap forks with what was stored last. */
      readonly flush?: boolean;
    },
    { readonly group: number; readonly branches: readonly BranchInfo[]; readonly pauseUs: number },
  ];
  'branch.list': [None, { readonly branches: readonly BranchInfo[] }];
  'branch.info': [{ readonly branch: string }, BranchInfo];
  'branch.rename': [{ readonly branch: string; readonly name: string }, BranchInfo];
  'branch.mount': [
    {
      readonly branch: string;
      readonly at: string;
      /** Only this folder of the branch is shown. */
      readonly path?: WirePath;
    },
    { readonly at: string; readonly path?: WirePath },
  ];
  'branch.unmount': [{ readonly branch: string }, None];
  'branch.diff': [
    { readonly branch: string; readonly against?: string; readonly from?: number; readonly limit?: number },
    DiffResult,
  ];
  'branch.stat': [At, FileStat];
  'branch.readdir': [At, { readonly entries: readonly { readonly name: WirePath; readonly type: FileType }[] }];
  'branch.read': [
    At & { readonly offset?: number; readonly length?: number },
    { readonly data: string; readonly size: number; readonly eof: boolean },
  ];
  'branch.conflicts': [
    { readonly branch: string; readonly paths?: readonly WirePath[] },
    { readonly conflicts: readonly Conflict[] },
  ];
  'branch.resolve': [
    {
      readonly branch: string;
      readonly path: WirePath;
      readonly take: 'ours' | 'theirs' | 'content';
      readonly data?: string;
      readonly mode?: number;
      /** With `content`: the parent's text that went into it. E_MOVED if the parent has another one by now. */
      readonly seen?: string;
    },
    None,
  ];
  'branch.revert': [{ readonly branch: string; readonly paths: readonly WirePath[] }, { readonly reverted: number }];
  'branch.take': [
    { readonly branch: string; readonly from: string; readonly paths: readonly WirePath[] },
    { readonly taken: number },
  ];
  'branch.commit': [{ readonly branch: string; readonly paths?: readonly WirePath[] }, CommitResult];
  'commit.list': [None, { readonly commits: readonly CommitInfo[] }];
  'commit.undo': [{ readonly commit: string }, { readonly paths: number }];
  'commit.forget': [{ readonly commit: string }, None];
  'branch.rebase': [{ readonly branch: string }, { readonly rebased: boolean; readonly paths: number }];
  'branch.abort': [{ readonly branch: string; readonly recursive?: boolean }, { readonly branches: readonly string[] }];
  'store.status': [None, StoreStatus];
  'store.check': [None, { readonly ok: boolean; readonly problems: readonly string[] }];
  'store.sync': [None, None];
  subscribe: [None, None];
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M][0];
export type Result<M extends Method> = Methods[M][1];
