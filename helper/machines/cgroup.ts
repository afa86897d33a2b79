// Limits on one run: how many processes it may have and how much memory, so that a fork bomb or a leak in a branch does not take
// the person's session with it. By a cgroup v2 (Documentation/admin-guide/cgroup-v2.rst of the kernel) beside the helper's own,
// where that is delegated to the person, as systemd does for user sessions; elsewhere there is none. Used by process-machine.ts.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';

export const MAX_PROCESSES = 4096;
/** Of the machine's memory, for one run: the rest is for the editor, which must stay usable. */
const MEMORY_SHARE = 0.75;
const PREFIX = 'bough-';

export interface Group {
  readonly path: string;
  /** After its last process has ended. */
  remove(): void;
}

export interface Limits {
  readonly processes: number;
  readonly memoryBytes: number;
}

export function usualLimits(memory = totalmem()): Limits {
  return { processes: MAX_PROCESSES, memoryBytes: Math.floor(memory * MEMORY_SHARE) };
}

/** The folder in which groups can be made: the parent of the helper's own group, or the root. Null where there is no cgroup v2. */
export function groupParent(mountinfo: string, ownCgroup: string): string | null {
  const mount = mountinfo
    .split('\n')
    .filter((line) => line.includes(' - cgroup2 '))
    .map((line) => line.split(' ')[4])
    .find((point) => point !== undefined);
  const own = /^0::(\/.*)$/m.exec(ownCgroup)?.[1];
  if (mount === undefined || own === undefined) return null;
  return own === '/' ? mount : join(mount, dirname(own));
}

/** Makes a group with the limits and moves the processes into it; null, and nothing left, where that is not possible. */
export function limitRun(parent: string | null, pids: readonly number[], limits = usualLimits()): Group | null {
  if (parent === null || pids[0] === undefined) return null;
  const path = join(parent, `${PREFIX}${pids[0]}`);
  const remove = () => removeEmpty(path);
  try {
    mkdirSync(path);
    // Without the controllers the group would be one only in name.
    const set = [
      setLimit(path, 'pids.max', limits.processes),
      setLimit(path, 'memory.max', limits.memoryBytes),
      // A leak ends by itself, not by filling the swap until nothing moves.
      setLimit(path, 'memory.swap.max', 0),
    ];
    if (!set.includes(true)) throw new Error('no controller is delegated');
    for (const pid of pids) writeFileSync(join(path, 'cgroup.procs'), String(pid));
    return { path, remove };
  } catch {
    remove();
    return null;
  }
}

/** Removes the groups of runs that ended while no helper was there; how many. One that is in use stays. */
export function removeEmptyGroups(parent: string | null): number {
  if (parent === null) return 0;
  let names: string[];
  try {
    names = readdirSync(parent);
  } catch {
    return 0;
  }
  return names.filter((name) => /^bough-\d+$/.test(name) && removeEmpty(join(parent, name))).length;
}

export function ownGroupParent(): string | null {
  try {
    return groupParent(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'));
  } catch {
    return null;
  }
}

/** Whether there is such a limit here. */
function setLimit(group: string, name: string, value: number): boolean {
  const file = join(group, name);
  if (!existsSync(file)) return false;
  writeFileSync(file, String(value));
  return true;
}

/** The kernel removes a group only when no process is in it. */
function removeEmpty(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch {
    return false;
  }
}
