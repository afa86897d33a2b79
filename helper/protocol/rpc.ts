// What a face (editor, CLI) may ask of the helper, and what the helper tells it. JSON-RPC 2.0 over a unix socket with LSP
// framing (vscode-jsonrpc); every request is `bough/<name>` with one params object. Used by helper/api, helper/cli and
// the extension. Imports only shapes.
import type {
  BranchInfo,
  CommitInfo,
  CommitResult,
  Conflict,
  DiffResult,
  FileStat,
  Side,
  StoreStatus,
  WirePath,
} from './boughfs.js';

/** How an agent's process is isolated. */
export type MachineKind = 'process' | 'microvm';

/** States of a branch as people see them (product words). */
export type PersonState =
  'running' | 'paused' | 'stopped' | 'committing' | 'committed' | 'superseded' | 'aborted' | 'failed';

export interface CheckRun {
  readonly command: string;
  readonly state: 'running' | 'passed' | 'failed' | 'cancelled';
  readonly exitCode: number | null;
  readonly startedMs: number;
  readonly endedMs: number | null;
  /** The last 64 KiB of what it printed. */
  readonly output: string;
  /** `edits` of the branch when it started: another value now means the result is stale. */
  readonly edits: number;
}

export interface Branch extends Omit<BranchInfo, 'state'> {
  readonly workspace: string;
  readonly person: PersonState;
  readonly fileState: BranchInfo['state'];
  readonly hint: string;
  /** The branch's files on the host: absolute folder of its mount; absent when it is not mounted. */
  readonly folder?: string;
  readonly agent: string;
  readonly machine: MachineKind;
  readonly terminal?: string;
  readonly exitCode: number | null;
  /** Why it is failed, or stopped without having ended by itself; null otherwise. */
  readonly note: string | null;
  /** Changed paths; null when they could not be counted. */
  readonly changes: number | null;
  readonly checks: CheckRun | null;
  /** Paths that a sibling changed as well. */
  readonly overlaps: number;
}

export interface Workspace {
  /** The real folder, absolute. */
  readonly folder: string;
  readonly branches: readonly Branch[];
  readonly commits: readonly CommitInfo[];
  readonly store: StoreStatus | null;
  /** Set when boughfs could not serve it: what failed and what to do. */
  readonly problem: { readonly code: string; readonly message: string } | null;
}

export interface AgentPreset {
  readonly id: string;
  readonly title: string;
  /** Found on this machine; absent when it can run. */
  readonly missing?: string;
  /** True when the agent takes a hint as its task and works without a person. */
  readonly takesHint: boolean;
  /** True when it works with a model somewhere else: of no use without `network`. */
  readonly asksModel: boolean;
}

export interface DoctorCheck {
  readonly id: string;
  readonly title: string;
  readonly status: 'pass' | 'warn' | 'fail' | 'skip';
  readonly detail: string;
  readonly fix: string;
}

/**
 * Any of them may carry LSP's `workDoneToken` beside its own params: its progress then comes as `$/progress` from one second on.
 * Clients that said `window.workDoneProgress` in `initialize` get a progress of the helper's own for what takes longer.
 */
export interface Requests {
  'bough/hello': [{ readonly client: string }, { readonly version: string; readonly pid: number }];
  /** Opens the store of a folder (made at first use) and keeps it open; safe to call again. */
  'bough/open': [{ readonly folder: string }, Workspace];
  'bough/workspaces': [Record<string, never>, { readonly workspaces: readonly Workspace[] }];
  'bough/agents': [{ readonly folder: string }, { readonly agents: readonly AgentPreset[] }];
  /** Start Agent: a branch of the base with an agent or shell in it. */
  'bough/start': [
    {
      readonly folder: string;
      readonly agent: string;
      readonly command?: readonly string[];
      readonly hint?: string;
      readonly name?: string;
      readonly network?: boolean;
      /** `process` unless said; `microvm` is E_NO_MICROVM where it cannot run. */
      readonly machine?: MachineKind;
      readonly rows?: number;
      readonly columns?: number;
    },
    Branch,
  ];
  /** Branch Agent Here: `hints.length` may be less than `count`. Each child runs the parent's agent with its hint. */
  'bough/branch': [
    {
      readonly branch: string;
      readonly count: number;
      readonly hints?: readonly string[];
      readonly group?: 'exclusive' | 'independent';
      readonly agent?: string;
      readonly command?: readonly string[];
    },
    { readonly branches: readonly Branch[]; readonly pauseUs: number },
  ];
  'bough/list': [{ readonly folder: string }, { readonly branches: readonly Branch[] }];
  'bough/diff': [
    { readonly branch: string; readonly against?: string; readonly from?: number; readonly limit?: number },
    DiffResult,
  ];
  'bough/stat': [{ readonly branch: string; readonly side: Side; readonly path: WirePath }, FileStat];
  'bough/readdir': [
    { readonly branch: string; readonly side: Side; readonly path: WirePath },
    { readonly entries: readonly { readonly name: WirePath; readonly type: FileStat['type'] }[] },
  ];
  /** Whole file, base64; E_TOO_BIG over 64 MiB. */
  'bough/read': [
    { readonly branch: string; readonly side: Side; readonly path: WirePath },
    { readonly data: string; readonly size: number },
  ];
  /** A unified diff as text of the changed files (binary files as one line each). */
  'bough/patch': [{ readonly branch: string; readonly paths?: readonly WirePath[] }, { readonly text: string }];
  'bough/exec': [
    { readonly branch: string; readonly command: readonly string[]; readonly timeoutMs?: number },
    { readonly exitCode: number; readonly stdout: string; readonly stderr: string },
  ];
  'bough/checks': [{ readonly branch: string; readonly command?: string }, CheckRun];
  'bough/conflicts': [{ readonly branch: string }, { readonly conflicts: readonly Conflict[] }];
  'bough/resolve': [
    {
      readonly branch: string;
      readonly path: WirePath;
      readonly take: 'ours' | 'theirs' | 'content';
      readonly data?: string;
    },
    Record<string, never>,
  ];
  'bough/revert': [{ readonly branch: string; readonly paths: readonly WirePath[] }, { readonly reverted: number }];
  'bough/take': [
    { readonly branch: string; readonly from: string; readonly paths: readonly WirePath[] },
    { readonly taken: number },
  ];
  /** Text files that both sides changed are merged by lines first (`merged`); what cannot be merged is E_CONFLICT. */
  'bough/commit': [
    {
      readonly branch: string;
      readonly paths?: readonly WirePath[];
      readonly git?: { readonly message: string };
      readonly operation?: string;
    },
    CommitResult & {
      readonly merged: readonly WirePath[];
      readonly gitCommit: string | null;
      /** The files are committed, git's commit was asked for and failed: git's words. */
      readonly gitProblem: string | null;
    },
  ];
  'bough/undo': [
    { readonly folder: string; readonly commit?: string },
    { readonly commit: string; readonly paths: number },
  ];
  'bough/rebase': [{ readonly branch: string }, { readonly paths: number; readonly merged: readonly WirePath[] }];
  'bough/abort': [{ readonly branch: string; readonly recursive?: boolean }, { readonly branches: readonly string[] }];
  'bough/stop': [{ readonly branch: string }, Branch];
  'bough/rename': [{ readonly branch: string; readonly name: string }, Branch];
  /** Mounts the branch (if it is not) and says where. */
  'bough/mount': [{ readonly branch: string }, { readonly folder: string }];
  /**
   * Attaches to the branch's terminal: from then on this client gets its data and exit. Of an agent that has ended only the
   * replay comes (`running: false`); with `shell` a shell is started in the branch then.
   */
  'bough/terminal/open': [
    { readonly branch: string; readonly rows: number; readonly columns: number; readonly shell?: boolean },
    {
      readonly terminal: string;
      readonly replay: string;
      readonly running: boolean;
      readonly exitCode: number | null;
    },
  ];
  'bough/terminal/input': [{ readonly terminal: string; readonly data: string }, Record<string, never>];
  'bough/terminal/resize': [
    { readonly terminal: string; readonly rows: number; readonly columns: number },
    Record<string, never>,
  ];
  'bough/doctor': [{ readonly folder?: string }, { readonly ok: boolean; readonly checks: readonly DoctorCheck[] }];
  /** Removes what crashed runs left and nothing else. */
  'bough/gc': [Record<string, never>, { readonly mounts: number; readonly processes: number; readonly files: number }];
  'bough/audit': [{ readonly folder: string; readonly limit?: number }, { readonly lines: readonly string[] }];
  /** Stops all agents, unmounts, and ends the helper. Branches stay; their mounts come back with the next start. */
  'bough/shutdown': [Record<string, never>, Record<string, never>];
}

export interface Notifications {
  /** Something of this workspace changed; ask `bough/list` again. Sent at most every 100 ms per workspace. */
  'bough/changed': { readonly folder: string };
  'bough/terminal/data': { readonly terminal: string; readonly data: string };
  'bough/terminal/exit': { readonly terminal: string; readonly exitCode: number | null };
}

/** An error as it travels: JSON-RPC `error.data`. Codes are those of boughfs and `E_NO_AGENT`, `E_NO_BWRAP`, `E_NO_FUSE`, … */
export interface ErrorData {
  readonly code: string;
  readonly fix?: string;
  readonly conflicts?: readonly Conflict[];
  readonly paths?: readonly WirePath[];
}
