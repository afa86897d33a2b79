// boughfs killed with SIGKILL at every named point of its operations and at random moments of commits: afterwards everything
// is as before or as after, the store opens, and the operation can be done or undone.
//
//   tsx test/crash/main.ts [seed] [kills]
import { Checks, Scratch } from '../harness.js';
import { randomFrom } from '../model/steps.js';
import { Worker } from '../model/worker.js';
import { Arena } from './arena.js';
import { killAtNamedPoints } from './named.js';
import { operations } from './operations.js';
import { killAtRandomMoments } from './random.js';

const SEED = 20_261;
const KILLS = 200;
const LANES = 2; // a kill is mostly waiting

const checks = new Checks();

async function inArena(name: string, body: (arena: Arena) => Promise<void>): Promise<void> {
  const scratch = new Scratch('crash');
  const worker = new Worker();
  const arena = new Arena(scratch, worker);
  try {
    await body(arena);
  } catch (error) {
    checks.fail(name, error);
  } finally {
    await arena.clear().catch((error: unknown) => {
      checks.fail(`${name}: end`, error);
    });
    worker.stop();
    await scratch.remove();
  }
}

const seed = Number(process.argv[2] ?? SEED);
const kills = Number(process.argv[3] ?? KILLS);
console.log(`seed ${String(seed)}`);
const random = randomFrom(seed);
const todo: (() => Promise<void>)[] = [
  ...operations.map(
    (operation) => () => inArena(operation.name, (arena) => killAtNamedPoints(arena, checks, operation)),
  ),
  ...Array.from(
    { length: kills > 0 ? LANES : 0 },
    () => () =>
      inArena('random moments', (arena) =>
        killAtRandomMoments(arena, checks, { kills: Math.ceil(kills / LANES), random }),
      ),
  ),
];
await Promise.all(
  Array.from({ length: LANES }, async () => {
    for (let next = todo.shift(); next !== undefined; next = todo.shift()) await next();
  }),
);
console.log(checks.summary());
process.exitCode = checks.failed === 0 ? 0 : 1;
