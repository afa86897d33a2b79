// What the model test does, as data that can be printed, replayed and shrunk; and how it is drawn at random.
import type { FileOp } from './worker.js';

export type Step =
  | { readonly do: 'op'; readonly branch: number; readonly op: FileOp }
  | { readonly do: 'branch'; readonly parent: number | null; readonly branch: number }
  | { readonly do: 'commit'; readonly branch: number }
  | { readonly do: 'undo' }
  | { readonly do: 'abort'; readonly branch: number }
  | { readonly do: 'remount'; readonly branch: number }
  | { readonly do: 'compare' }
  | { readonly do: 'restart'; readonly how: 'kill' | 'stop' };

/** Numbers from 0 to below 1, the same for the same seed. (mulberry32) */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const NAMES = ['a', 'b', 'c', 'd', '.bough', '@types', 'g\xff\n', 'n'.repeat(255)];
const XATTRS = ['user.one', 'user.two', 'trusted.three'];
const MODES = [0o644, 0o600, 0o755, 0o4755, 0o2711, 0o1777, 0o444];

/** What the generator knows of the live branches: their numbers, and the paths that were there when it last looked. */
export interface Known {
  readonly branches: readonly number[];
  paths(branch: number): readonly string[];
}

export class Generator {
  private nextBranch = 0;

  constructor(private readonly random: () => number) {}

  step(known: Known): Step {
    const { branches } = known;
    if (branches.length === 0) return this.branch(null);
    const dice = this.random();
    if (dice < 0.93) {
      const branch = this.pick(branches);
      return { do: 'op', branch, op: this.op(known.paths(branch)) };
    }
    if (dice < 0.95) return { do: 'compare' };
    if (dice < 0.963) {
      if (branches.length >= 5) return { do: 'abort', branch: this.pick(branches) };
      return this.branch(this.random() < 0.5 ? null : this.pick(branches));
    }
    if (dice < 0.98) return { do: 'commit', branch: this.pick(branches) };
    if (dice < 0.988) return { do: 'undo' };
    if (dice < 0.992) return { do: 'remount', branch: this.pick(branches) };
    if (dice < 0.995) return { do: 'restart', how: 'stop' };
    return { do: 'restart', how: 'kill' };
  }

  /** An operation on paths that are mostly there. */
  op(paths: readonly string[]): FileOp {
    const path = this.path(paths);
    const draw = Math.floor(this.random() * 100);
    const offset = this.pick([0, 1, 4095, 4096, 5000, 70_000]);
    if (draw < 10) return { kind: 'create', path: this.fresh(paths), data: this.data(), mode: this.pick(MODES) };
    if (draw < 14) return { kind: 'replace', path, data: this.data() };
    if (draw < 21) return { kind: 'write', path, data: this.data(), offset };
    if (draw < 25) return { kind: 'append', path, data: this.data() };
    if (draw < 29) return { kind: 'truncate', path, size: this.pick([0, 1, 3, 4096, 10_000]) };
    if (draw < 33) return { kind: 'read', path };
    if (draw < 43) return { kind: 'rename', path, to: this.eitherPath(paths), flags: this.pick([0, 0, 0, 1, 2]) };
    if (draw < 47) return { kind: 'link', path, to: this.eitherPath(paths) };
    if (draw < 53) return { kind: 'unlink', path };
    if (draw < 59) return { kind: 'mkdir', path: this.fresh(paths), mode: this.pick([0o755, 0o700, 0o2775]) };
    if (draw < 63) return { kind: 'rmdir', path };
    if (draw < 66) return { kind: 'symlink', path: this.fresh(paths), target: this.pick(['a', '../b', '/x', 'd/d']) };
    if (draw < 67) return { kind: 'readlink', path };
    if (draw < 71) return { kind: 'chmod', path, mode: this.pick(MODES) };
    if (draw < 73) return { kind: 'chown', path, uid: this.pick([0, 1000]), gid: this.pick([0, 1000]) };
    if (draw < 76) return { kind: 'utime', path, time: 1_000_000_000 + Math.floor(this.random() * 1000) };
    if (draw < 80)
      return {
        kind: 'setxattr',
        path,
        name: this.pick(XATTRS),
        data: this.pick(['', 'x', '\0binary\xff', 'value']),
        flags: this.pick([0, 0, 1, 2]),
      };
    if (draw < 82) return { kind: 'removexattr', path, name: this.pick(XATTRS) };
    if (draw < 83) return { kind: 'mknod', path: this.fresh(paths), mode: this.pick([0o10644, 0o140600]), rdev: 0 };
    if (draw < 86) return { kind: 'fallocate', path, mode: this.pick([0, 1, 3, 17]), offset, length: 4096 };
    if (draw < 88) return { kind: 'map', path, offset: this.pick([0, 3, 4090]), data: 'mapped' };
    if (draw < 89) return { kind: 'tmpfile', path: this.fresh(paths), data: this.data() };
    if (draw < 91) {
      return { kind: 'copyRange', path, to: this.eitherPath(paths), offset: 0, size: this.pick([0, 2]), length: 5000 };
    }
    if (draw < 93) return { kind: 'stat', path };
    if (draw < 94) return { kind: 'list', path };
    const handle = Math.floor(this.random() * 3);
    if (draw < 96) return { kind: 'hold', path, handle, flags: this.pick([0, 2, 2, 0o2002]) };
    if (draw < 97) return { kind: 'heldWrite', handle, data: this.data(), offset };
    if (draw < 98) return { kind: 'heldRead', handle, offset: 0, length: 100_000 };
    if (draw < 99) return { kind: 'heldTruncate', handle, size: 5 };
    return { kind: 'heldClose', handle };
  }

  private branch(parent: number | null): Step {
    return { do: 'branch', parent, branch: this.nextBranch++ };
  }

  private pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T;
  }

  private path(paths: readonly string[]): string {
    return paths.length > 0 && this.random() < 0.8 ? this.pick(paths) : this.fresh(paths);
  }

  private eitherPath(paths: readonly string[]): string {
    return this.random() < 0.4 ? this.path(paths) : this.fresh(paths);
  }

  /** A name in a folder that is mostly there. */
  private fresh(paths: readonly string[]): string {
    const name = this.pick(NAMES);
    if (paths.length === 0 || this.random() < 0.3) return name;
    const near = this.pick(paths);
    const folder = this.random() < 0.5 ? near : near.slice(0, Math.max(0, near.lastIndexOf('/')));
    // Deep enough to matter, short enough for PATH_MAX.
    return folder === '' || folder.split('/').length > 3 ? name : `${folder}/${name}`;
  }

  private data(): string {
    const text = this.pick(['x', 'data\n', 'line\n'.repeat(50), '\0\xff binary', '']);
    return this.random() < 0.1 ? text.repeat(1000) : text;
  }
}
