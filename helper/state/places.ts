// Where things lie: sockets, state and stores, by the XDG base directory specification. Used by the daemon, its clients and the
// command line; the only place that knows these paths.
import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { BoughError } from '../protocol/failure.js';

export interface Places {
  /** Sockets and the lock, 0700. */
  readonly runtime: string;
  /** What must outlive a restart of the machine, 0700. */
  readonly state: string;
  readonly cache: string;
  readonly socket: string;
  readonly lock: string;
  readonly log: string;
}

export interface StorePlaces {
  /** First half of the hash of the folder's path; the name of its folder below stores/. */
  readonly hash: string;
  readonly root: string;
  /** Owned by boughfs. */
  readonly store: string;
  /** One mount point per branch. */
  readonly mounts: string;
  /** Per branch: home, tmp, transcript. */
  readonly branches: string;
  readonly audit: string;
  readonly log: string;
  readonly socket: string;
}

function uid(): number {
  return process.getuid?.() ?? 0;
}

/** @param env of the process; only XDG_RUNTIME_DIR, XDG_STATE_HOME, XDG_CACHE_HOME and HOME are looked at */
export function places(env: NodeJS.ProcessEnv = process.env): Places {
  const home = env['HOME'] ?? homedir();
  const absolute = (value: string | undefined) => (value?.startsWith('/') === true ? value : undefined);
  const runtimeBase = absolute(env['XDG_RUNTIME_DIR']);
  const runtime = runtimeBase === undefined ? `/tmp/bough-${uid()}` : join(runtimeBase, 'bough');
  const state = join(absolute(env['XDG_STATE_HOME']) ?? join(home, '.local', 'state'), 'bough');
  return {
    runtime,
    state,
    cache: join(absolute(env['XDG_CACHE_HOME']) ?? join(home, '.cache'), 'bough'),
    socket: join(runtime, 'helper.sock'),
    lock: join(runtime, 'helper.lock'),
    log: join(state, 'helper.log'),
  };
}

/** @param folder real, absolute path of the workspace */
export function storePlaces(at: Places, folder: string): StorePlaces {
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  const root = join(at.state, 'stores', hash);
  return {
    hash,
    root,
    store: join(root, 'store'),
    mounts: join(root, 'mounts'),
    branches: join(root, 'branches'),
    audit: join(root, 'audit.jsonl'),
    log: join(root, 'boughfs.log'),
    socket: join(at.runtime, `fs-${hash}.sock`),
  };
}

/** Makes a folder that only this person may enter, or says why it cannot be trusted. */
export function privateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  // Below /tmp somebody else may have been first.
  if (!found.isDirectory() || found.uid !== uid()) {
    throw new BoughError('E_UNSAFE_FOLDER', `${path} is not a folder of this user, so it is not used.`, {
      fix: `Remove ${path}, or set XDG_RUNTIME_DIR to a folder of your own.`,
    });
  }
  if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700);
}
