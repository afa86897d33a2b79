// What crashed runs left, and how it goes: mounts nobody serves, programs of branches that are gone, folders and sockets without
// an owner. Looks below our own state and runtime folders only. Used by `bough/gc` and at the start of the helper.
import { closeSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../files/boughfs.js';
import { detachMount, fuseMountsBelow } from './mounts.js';
import type { Machine, Survivor } from '../machines/machine.js';
import { isRunning } from '../machines/process-table.js';
import { pidfdOpen, pidfdSendSignal } from '../native/addon.js';
import type { Places } from '../state/places.js';

const SIGKILL = 9;
const DEADLINE_MS = 10_000;

/** Ends a program's whole PID namespace. True when there was something to end. */
export async function endSurvivor(survivor: Survivor): Promise<boolean> {
  let fd: number;
  try {
    fd = pidfdOpen(survivor.init.pid);
  } catch {
    return false;
  }
  try {
    if (!isRunning(survivor.init)) return false;
    pidfdSendSignal(fd, SIGKILL);
  } catch {
    return false;
  } finally {
    closeSync(fd);
  }
  const deadline = Date.now() + DEADLINE_MS;
  while (isRunning(survivor.init) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
  return true;
}

/** Programs for which nobody waits any more: commands and checks of an earlier helper. */
export async function endOrphans(
  machine: Machine,
  places: Places,
  keep: (survivor: Survivor) => boolean,
): Promise<number> {
  const orphans = machine.survivors(places.state).filter((survivor) => !keep(survivor));
  const ended = await Promise.all(orphans.map((survivor) => endSurvivor(survivor)));
  return ended.filter(Boolean).length;
}

/** Mounts of stores whose boughfs does not answer. It takes its own back when it starts; these have nobody. */
export async function detachDeadMounts(places: Places, environment: NodeJS.ProcessEnv): Promise<number> {
  const stores = join(places.state, 'stores');
  let detached = 0;
  const alive = new Map<string, boolean>();
  for (const point of fuseMountsBelow(stores)) {
    const hash = point.slice(stores.length + 1).split('/')[0] ?? '';
    if (!alive.has(hash)) alive.set(hash, await isAlive(join(places.runtime, `fs-${hash}.sock`)));
    if (alive.get(hash) !== true && (await detachMount(point, environment))) detached++;
  }
  return detached;
}

/** Sockets that nobody listens at. */
export async function removeDeadSockets(places: Places): Promise<number> {
  let removed = 0;
  for (const name of readdirSync(places.runtime)) {
    const path = join(places.runtime, name);
    if (!/^fs-[0-9a-f]{16}\.sock$/.test(name) || (await isAlive(path))) continue;
    rmSync(path, { force: true });
    removed++;
  }
  return removed;
}
