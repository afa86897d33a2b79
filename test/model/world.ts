// One run of the model: a real boughfs with its branches, and for each branch a plain folder, its twin, that every operation is
// done to as well. What differs is thrown.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BoughError } from '../../helper/protocol/failure.js';
import { Scratch, Server } from '../harness.js';
import { apart, carried, merged, stripped } from './merge.js';
import type { Known, Step } from './steps.js';
import { differences, type FileOp, type Tree, type Worker } from './worker.js';

interface ModelBranch {
  readonly id: string;
  readonly at: string;
  readonly twin: string;
  readonly parent: number | null;
  /** The parent's tree at the branch point (without folders' times). */
  readonly point: Tree;
}

interface Undoable {
  readonly commit: string;
  readonly before: Tree;
}

/** What the model says should not be so. */
export class Mismatch extends Error {}

export class World implements Known {
  private readonly live = new Map<number, ModelBranch>();
  private readonly lastPaths = new Map<number, readonly string[]>();
  private undoable: Undoable | null = null;
  /** Folders of the base that a commit touches get other times, also in branches that see them live. */
  private committed = false;
  /** Files that an undo brought back have one more name, in the store. */
  private undone = false;
  private server: Server;

  private constructor(
    private readonly scratch: Scratch,
    private readonly worker: Worker,
    server: Server,
    private readonly base: string,
  ) {
    this.server = server;
  }

  static async make(worker: Worker): Promise<World> {
    const scratch = new Scratch('model');
    try {
      const base = scratch.folder('base');
      for (const op of baseOperations) await worker.op([base], op);
      const server = await World.serve(scratch, base);
      return new World(scratch, worker, server, base);
    } catch (error) {
      await scratch.remove();
      throw error;
    }
  }

  private static serve(scratch: Scratch, base: string): Promise<Server> {
    return Server.start({ base, store: scratch.folder('store'), socket: join(scratch.path, 'socket') });
  }

  get branches(): readonly number[] {
    return [...this.live.keys()];
  }

  paths(branch: number): readonly string[] {
    return this.lastPaths.get(branch) ?? [];
  }

  log(): string {
    return this.server.log();
  }

  async end(): Promise<void> {
    try {
      for (const branch of this.live.values()) await this.worker.forget(branch.at);
      await this.server.kill();
    } finally {
      await this.scratch.remove();
    }
  }

  /** A step whose branch is not there (any more) does nothing, so that any part of a list of steps can be run. */
  async run(step: Step): Promise<void> {
    switch (step.do) {
      case 'op': {
        await this.operate(step.branch, step.op);
        return;
      }
      case 'branch': {
        await this.branch(step.parent, step.branch);
        return;
      }
      case 'commit': {
        await this.commit(step.branch);
        return;
      }
      case 'undo': {
        await this.undo();
        return;
      }
      case 'abort': {
        await this.abort(step.branch);
        return;
      }
      case 'remount': {
        await this.remount(step.branch);
        return;
      }
      case 'compare': {
        await this.compareAll('compared');
        return;
      }
      case 'restart': {
        await this.restart(step.how);
        return;
      }
    }
  }

  private async operate(number: number, op: FileOp): Promise<void> {
    const branch = this.live.get(number);
    if (branch === undefined) return;
    const [real, twin] = await this.worker.op([branch.at, branch.twin], op);
    const [a, b] = [real, twin].map((result) => this.comparable(op, result));
    if (a !== b) throw new Mismatch(`${op.kind} gave ${String(a)}, the plain folder gave ${String(b)}`);
  }

  private comparable(op: FileOp, result: unknown): string {
    if (op.kind === 'stat' && Array.isArray(result) && this.undone) result[4] = 0;
    return JSON.stringify(result).slice(0, 500);
  }

  private async branch(parentNumber: number | null, number: number): Promise<void> {
    const parent = parentNumber === null ? null : this.live.get(parentNumber);
    if (parent === undefined) return;
    const from = parent === null ? this.base : parent.twin;
    const at = this.scratch.folder('mounts', String(number));
    const twin = this.scratch.folder('twins', String(number));
    const point = await this.worker.dump(from, false);
    const id = await this.server.mountedBranch(parent?.id ?? 'base', at);
    await this.worker.copy(from, twin);
    this.live.set(number, { id, at, twin, parent: parentNumber, point });
    await this.compare(number, 'a new branch');
    if (parentNumber !== null) await this.compare(parentNumber, 'a branch that got a child');
  }

  private async compare(number: number, what: string): Promise<void> {
    const branch = this.live.get(number);
    if (branch === undefined) return;
    const wanted = await this.worker.dump(branch.twin, !this.committed);
    expectSame(`${what} (${String(number)})`, await this.worker.dump(branch.at, !this.committed), wanted);
    this.lastPaths.set(
      number,
      Object.keys(wanted).filter((path) => path !== ''),
    );
  }

  private async compareAll(what: string): Promise<void> {
    for (const number of this.live.keys()) await this.compare(number, what);
  }

  private hasChildren(number: number): boolean {
    return [...this.live.values()].some((branch) => branch.parent === number);
  }

  private async commit(number: number): Promise<void> {
    const branch = this.live.get(number);
    if (branch === undefined || this.hasChildren(number)) return;
    const parent = branch.parent === null ? null : this.live.get(branch.parent);
    if (parent === undefined) return;
    // A held file of a branch that ends has no counterpart.
    await this.worker.forget(branch.at);
    await this.worker.forget(branch.twin);
    if (parent !== null) {
      await this.worker.forget(parent.at);
      await this.worker.forget(parent.twin);
    }
    const target = parent === null ? this.base : parent.at;
    const exact = await this.worker.dump(target);
    const before = await this.worker.dump(target, false);
    const mine = await this.worker.dump(branch.twin, false);
    const unmoved = differences(before, branch.point).length === 0;
    const overlapping = !apart(branch.point, mine, before);
    let commit: string;
    try {
      commit = (await this.server.client.request('branch.commit', { branch: branch.id })).commit;
    } catch (error) {
      if (!(error instanceof BoughError) || error.code !== 'E_CONFLICT') throw error;
      if (!overlapping) {
        throw new Mismatch(
          `A commit had a conflict where nothing overlaps: ${JSON.stringify(error.detail).slice(0, 1500)}`,
        );
      }
      expectSame('the target of a commit with conflicts', await this.worker.dump(target), exact);
      await this.compareAll('after a commit with conflicts');
      return;
    }
    const after = await this.worker.dump(target, false);
    if (unmoved) {
      const how = parent === null ? carried : (tree: Tree): Tree => tree;
      expectSame(`a commit of branch ${String(number)}`, how(after), how(mine));
    } else {
      // Where both sides changed the same places, a merge may follow renames and links in ways that paths alone do not tell.
      if (overlapping) {
        await this.afterCommit(number, parent, commit, exact);
        return;
      }
      expectSame('a merging commit', stripped(after), merged(branch.point, mine, before));
    }
    await this.afterCommit(number, parent, commit, exact);
  }

  private async afterCommit(number: number, parent: ModelBranch | null, commit: string, exact: Tree): Promise<void> {
    this.committed = true;
    if (parent === null) this.undoable = { commit, before: exact };
    else await this.renewTwin(parent);
    await this.drop(number, false);
    await this.compareAll('after a commit');
    this.expectNoStaging();
  }

  /** After a commit into a branch that was found right: its twin becomes a copy of it. */
  private async renewTwin(branch: ModelBranch): Promise<void> {
    rmSync(branch.twin, { recursive: true });
    mkdirSync(branch.twin);
    await this.worker.copy(branch.at, branch.twin);
  }

  private expectNoStaging(): void {
    const left = readdirSync(this.base, { recursive: true, encoding: 'latin1' });
    const staged = left.filter((path) => path.includes('.bough-stage-'));
    if (staged.length > 0) throw new Mismatch(`Staging names are left in the base: ${staged.join(', ')}`);
  }

  private async undo(): Promise<void> {
    if (this.undoable === null) return;
    await this.server.client.request('commit.undo', { commit: this.undoable.commit });
    this.undone = true;
    const after = await this.worker.dump(this.base);
    expectSame('the base after an undo', after, this.undoable.before);
    this.undoable = null;
    await this.compareAll('after an undo');
    this.expectNoStaging();
  }

  private async abort(number: number): Promise<void> {
    if (!this.live.has(number) || this.hasChildren(number)) return;
    await this.drop(number, true);
    await this.compareAll('after an abort');
  }

  private async drop(number: number, abort: boolean): Promise<void> {
    const branch = this.live.get(number);
    if (branch === undefined) return;
    await this.worker.forget(branch.at);
    await this.worker.forget(branch.twin);
    if (abort) await this.server.client.request('branch.abort', { branch: branch.id });
    else await this.server.client.request('branch.unmount', { branch: branch.id });
    this.live.delete(number);
    this.lastPaths.delete(number);
    rmSync(branch.twin, { recursive: true });
    if (existsSync(branch.at)) rmSync(branch.at, { recursive: true });
  }

  private async remount(number: number): Promise<void> {
    const branch = this.live.get(number);
    if (branch === undefined) return;
    await this.worker.forget(branch.at);
    await this.worker.forget(branch.twin);
    await this.server.client.request('branch.unmount', { branch: branch.id });
    await this.server.client.request('branch.mount', { branch: branch.id, at: branch.at });
    await this.compare(number, 'mounted again');
  }

  private async restart(how: 'kill' | 'stop'): Promise<void> {
    for (const branch of this.live.values()) {
      if (how === 'stop') await this.worker.forget(branch.at);
      await this.worker.forget(branch.twin);
    }
    if (how === 'kill') await this.server.kill();
    else if ((await this.server.stop()) !== 0) throw new Mismatch('boughfs did not stop cleanly');
    for (const branch of this.live.values()) await this.worker.forget(branch.at);
    this.server = await World.serve(this.scratch, this.base);
    await this.compareAll(`after ${how} and a new start`);
    const check = await this.server.client.request('store.check', {});
    if (!check.ok) throw new Mismatch(`The store has problems after ${how}: ${check.problems.join('; ')}`);
  }
}

function expectSame(what: string, is: Tree, wanted: Tree): void {
  const lines = differences(is, wanted);
  if (lines.length > 0) throw new Mismatch(`${what} differs:\n  ${lines.slice(0, 12).join('\n  ')}`);
}

const OLD = 1_200_000_000;

/** A small base with what tends to be difficult. */
const baseOperations: readonly FileOp[] = [
  { kind: 'mkdir', path: 'd', mode: 0o2755 },
  { kind: 'mkdir', path: 'd/d', mode: 0o700 },
  { kind: 'mkdir', path: 'd/d/c', mode: 0o755 },
  { kind: 'mkdir', path: 'empty', mode: 0o1777 },
  { kind: 'create', path: 'a', data: 'base a\n', mode: 0o644 },
  { kind: 'create', path: 'd/a', data: 'x'.repeat(200_000), mode: 0o600 },
  { kind: 'create', path: 'd/d/b', data: 'deep\n', mode: 0o755 },
  { kind: 'create', path: 'd/d/c/a', data: '', mode: 0o444 },
  { kind: 'symlink', path: 'd/b', target: '../a' },
  { kind: 'create', path: 'sparse', data: 'begin', mode: 0o644 },
  { kind: 'truncate', path: 'sparse', size: 300_000 },
  { kind: 'setxattr', path: 'd', name: 'user.one', data: 'base', flags: 0 },
  { kind: 'setxattr', path: 'd/a', name: 'user.two', data: 'base', flags: 0 },
  { kind: 'mknod', path: 'd/pipe', mode: 0o10644, rdev: 0 },
  { kind: 'utime', path: 'd/d/c/a', time: OLD },
  { kind: 'utime', path: 'd/d/c', time: OLD + 1 },
  { kind: 'utime', path: 'd/d/b', time: OLD + 2 },
  { kind: 'utime', path: 'd/d', time: OLD + 3 },
  { kind: 'utime', path: 'd/a', time: OLD + 4 },
  { kind: 'utime', path: 'd', time: OLD + 5 },
  { kind: 'utime', path: 'a', time: OLD + 6 },
];
