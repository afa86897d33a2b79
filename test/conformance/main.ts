// Conformance: a program cannot tell a branch from the file system below. Every case of cases_*.py runs on a plain folder, on
// a branch over the same files, on a branch with files of its own and on a nested branch; then the traps of stacked file
// systems and whole programs run on branches. Run: npx tsx test/conformance/main.ts [--target name] [--only text]
// Last line: `N passed, N failed, N skipped`.
import { createInterface } from 'node:readline';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Checks, root, Scratch } from '../harness.js';
import { parts } from './part.js';
import { person } from './person.js';
import { Branches, native, type Target } from './targets.js';
import { traps } from './traps.js';
import { workloads } from './workloads.js';

interface CaseResult {
  readonly name: string;
  readonly status: 'ok' | 'fail' | 'skip';
  readonly why: string;
}

async function runCases(target: Target, checks: Checks, only: string): Promise<void> {
  const folder = await target.prepare();
  const before = { passed: checks.passed, failed: checks.failed };
  const child = spawn('python3', [join(root, 'test', 'conformance', 'runner.py'), 'run', folder, only], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    const result = JSON.parse(line) as CaseResult;
    const name = `[${target.name}] ${result.name}`;
    if (result.status === 'ok') checks.pass();
    else if (result.status === 'skip') checks.skip(name, result.why);
    else checks.fail(name, result.why);
  }
  const status = await ended;
  if (status !== 0) checks.fail(`[${target.name}] the runner`, `ended with status ${String(status)}`);
  console.log(
    `${target.name} (${target.shows}): ${checks.passed - before.passed} passed, ${checks.failed - before.failed} failed`,
  );
}

const { values } = parseArgs({
  options: { target: { type: 'string' }, only: { type: 'string', default: '' } },
});
const wanted = (name: string) => values.target === undefined || values.target === name;
const checks = new Checks();
const scratch = new Scratch('conformance');
let branches: Branches | undefined;
try {
  if (wanted('native')) await runCases(native(scratch), checks, values.only);
  branches = await Branches.start(scratch);
  for (const target of [branches.overBase(), branches.part(), branches.own(), branches.nested()]) {
    if (!wanted(target.name)) continue;
    await checks.check(`[${target.name}] the cases run`, () => runCases(target, checks, values.only));
    await checks.check(`[${target.name}] nothing else changed`, () => target.verify());
  }
  if (wanted('person')) await person(scratch, checks);
  if (wanted('traps')) await traps(branches.server, scratch, checks);
  if (wanted('part')) await parts(scratch, checks);
  if (wanted('workloads')) await workloads(branches.server, scratch, checks);
} catch (error) {
  checks.fail('conformance', error);
} finally {
  if (branches !== undefined) {
    const server = branches;
    await checks.check('the store is whole and the server ends cleanly', () => server.stop());
  }
  await scratch.remove();
}
console.log(checks.summary());
process.exit(checks.failed === 0 ? 0 : 1);
