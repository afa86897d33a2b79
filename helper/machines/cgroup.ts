// A limit on how many processes one run may have, so that a fork bomb in a branch does not take the person's session with it. By
// a cgroup v2 (Documentation/admin-guide/cgroup-v2.rst of the kernel) beside the helper's own, where that is delegated to the
// person, as systemd does for user sessions; elsewhere there is none. Used by process-machine.ts.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const MAX_PROCESSES = 4096;

export interface Group {
  readonly path: string;
  /** After its last process has ended. */
  remove(): void;
}

/** The folder in which groups can be made: the parent of the helper's own group. Null where there is no cgroup v2. */
export function groupParent(mountinfo: string, ownCgroup: string): string | null {
  const mount = mountinfo
    .split('\n')
    .filter((line) => line.includes(' - cgroup2 '))
    .map((line) => line.split(' ')[4])
    .find((point) => point !== undefined);
  const own = /^0::(\/.*)$/m.exec(ownCgroup)?.[1];
  if (mount === undefined || own === undefined || own === '/') return null;
  return join(mount, dirname(own));
}

/** Makes a group with the limit and moves the processes into it; null, and nothing left, where that is not possible. */
export function limitProcesses(parent: string | null, name: string, pids: readonly number[]): Group | null {
  if (parent === null) return null;
  const path = join(parent, name);
  const remove = () => {
    try {
      rmdirSync(path);
    } catch {
      // Still in use for a moment, or never made: an empty group costs nothing.
    }
  };
  try {
    mkdirSync(path);
    // Without the controller the group would be one only in name.
    if (!existsSync(join(path, 'pids.max'))) throw new Error('the pids controller is not delegated');
    writeFileSync(join(path, 'pids.max'), String(MAX_PROCESSES));
    for (const pid of pids) writeFileSync(join(path, 'cgroup.procs'), String(pid));
    return { path, remove };
  } catch {
    remove();
    return null;
  }
}

export function ownGroupParent(): string | null {
  try {
    return groupParent(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'));
  } catch {
    return null;
  }
}
