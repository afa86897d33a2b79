// Kills at every named fail point that an operation passes, first and last time: each is found by a run that nobody disturbs.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Checks } from '../harness.js';
import { unlike, type Arena, type Sight } from './arena.js';
import type { Operation, Ready } from './operations.js';

interface Undisturbed {
  readonly before: Sight;
  readonly after: Sight;
  /** "name:count", counted from the start of the process. */
  readonly points: readonly string[];
}

function passings(trace: string): readonly string[] {
  return existsSync(trace) ? readFileSync(trace, 'utf8').split('\n').slice(0, -1) : [];
}

/** The points of the window, as counts of the whole trace: the first and the last passing of each name. */
function pointsOf(before: readonly string[], during: readonly string[]): readonly string[] {
  const points: string[] = [];
  for (const name of new Set(during)) {
    const earlier = before.filter((one) => one === name).length;
    const times = during.filter((one) => one === name).length;
    points.push(`${name}:${String(earlier + 1)}`);
    if (times > 1) points.push(`${name}:${String(earlier + times)}`);
  }
  return points;
}

async function undisturbed(arena: Arena, operation: Operation): Promise<Undisturbed> {
  await arena.renew();
  const trace = join(arena.scratch.path, 'trace');
  await arena.start({ BOUGH_FAIL_TRACE: trace });
  const ready = await operation.prepare(arena);
  const before = await arena.look();
  const earlier = passings(trace);
  await ready.act();
  const all = passings(trace);
  const after = await arena.look();
  await arena.sound();
  await arena.clear();
  return { before, after, points: pointsOf(earlier, all.slice(earlier.length)) };
}

/** Kills once; whether the operation turned out to have happened, or null if it was not killed in it. */
async function killAt(arena: Arena, operation: Operation, point: string, known: Undisturbed): Promise<boolean | null> {
  await arena.renew();
  await arena.start({ BOUGH_FAIL_AT: point });
  const ready: Ready = await operation.prepare(arena);
  const answered = await ready.act().then(
    () => true,
    (error: unknown) => {
      if (arena.server.ended === null && arena.client.isAlive) throw error;
      return false;
    },
  );
  if (answered) return null; // threads in the background pass points at their own pace
  const how = await arena.server.exit;
  if (how !== 'SIGKILL') throw new Error(`boughfs ended with ${String(how)}: ${arena.server.log()}`);
  await arena.kill();
  await arena.start();
  const seen = await arena.look();
  const fromOld = unlike(seen, known.before);
  const fromNew = unlike(seen, known.after);
  if (fromOld.length > 0 && fromNew.length > 0) {
    throw new Error(
      `neither as before:\n${fromOld.slice(0, 6).join('\n')}\nnor as after:\n${fromNew.slice(0, 6).join('\n')}`,
    );
  }
  await arena.sound();
  const happened = fromNew.length === 0;
  if (!happened) {
    await ready.act();
    expectLike('done again', await arena.look(), known.after);
  }
  if (ready.takeBack !== undefined) {
    await ready.takeBack();
    const undone = await arena.look();
    expectLike('undone', { ...undone, branches: {} }, { ...known.before, branches: {} });
    await arena.sound();
  }
  return happened;
}

function expectLike(what: string, is: Sight, wanted: Sight): void {
  const lines = unlike(is, wanted);
  if (lines.length > 0) throw new Error(`${what}, but not as it should be:\n${lines.slice(0, 8).join('\n')}`);
}

export async function killAtNamedPoints(arena: Arena, checks: Checks, operation: Operation): Promise<void> {
  const found: Undisturbed[] = [];
  await checks.check(`${operation.name}: undisturbed`, async () => {
    const known = await undisturbed(arena, operation);
    found.push(known);
    if (known.points.length === 0) throw new Error('no fail point is passed');
  });
  const known = found[0];
  if (known === undefined) return;
  const { points } = known;
  let [killed, happened] = [0, 0];
  for (const point of points) {
    await checks.check(`${operation.name}, killed at ${point}`, async () => {
      const result = await killAt(arena, operation, point, known);
      if (result !== null) killed++;
      if (result === true) happened++;
    });
  }
  await checks.check(`${operation.name}: the points are met`, () => {
    if (killed < points.length / 2) throw new Error(`only ${String(killed)} of ${points.join(' ')}`);
  });
  console.log(
    `${operation.name}: ${String(points.length)} points, ${String(killed)} kills, ${String(happened)} had happened`,
  );
  await arena.clear();
}
