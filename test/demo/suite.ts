// The demo as a suite: what `npm run demo` promises, run as a person runs it. Last line: `N passed, N failed, N skipped`.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import { runProgram, type ProgramResult } from '../cli/run-program.js';
import { Suite } from '../cli/suite.js';
import { root } from '../harness.js';
import type { DemoResult } from './demo.js';
import type { Refusal } from './report.js';

const suite = new Suite();

function demo(...args: string[]): Promise<ProgramResult> {
  const command = [join(root, 'node_modules', '.bin', 'tsx'), join(root, 'test', 'demo', 'main.ts'), ...args];
  return runProgram(command, { timeoutMs: 300_000 });
}

function lastLine({ stdout }: ProgramResult): unknown {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
}

await suite.test('three branches: each repairs, the best is committed, nothing is left', async () => {
  const ran = await demo('--json');
  const result = lastLine(ran) as DemoResult;
  assert.deepEqual(result.problems, [], ran.stderr);
  assert.equal(ran.status, 0);
  const { ok, mode, branches, baseTestsPass, tries, winner, states, leftovers } = result;
  assert.deepEqual(
    { ok, mode, branches, baseTestsPass },
    { ok: true, mode: 'process', branches: 3, baseTestsPass: true },
  );
  assert.ok(tries.some(({ name }) => name === winner));
  assert.deepEqual(Object.values(states).sort(), ['committed', 'committed', 'superseded', 'superseded']);
  assert.deepEqual(leftovers, { mounts: 0, processes: 0, files: 0, bytes: 0, names: [] });
  assert.ok((result.commitMs ?? 0) > 0 && (result.commitIntoParentMs ?? 0) > 0 && (result.pauseMs ?? 0) > 0);
  assert.ok(new Set(tries.map(({ repair }) => repair)).size > 1, 'different hints led to different repairs');
});

await suite.test('one branch, as a report for people', async () => {
  const ran = await demo('--branches', '1');
  assert.equal(ran.status, 0, ran.stdout + ran.stderr);
  assert.match(ran.stdout, /^branched it 1 times; it paused for [\d.]+ ms$/m);
  assert.match(ran.stdout, /^npm test in the folder: passes$/m);
  assert.match(ran.stdout, /^leftovers {2}0 mounts, 0 processes, 0 files, 0 bytes$/m);
  assert.equal(ran.stdout.trimEnd().split('\n').at(-1), 'ok');
});

await suite.test('microVMs are refused in clear words', async () => {
  const ran = await demo('--json', '--mode', 'microvm');
  assert.equal(ran.status, 1);
  const { ok, mode, error } = lastLine(ran) as Refusal;
  assert.deepEqual([ok, mode, error.code], [false, 'microvm', 'E_NO_MICROVM']);
  assert.match(ran.stderr, /E_NO_MICROVM: .*\n {2}fix: --mode process/);
});

await suite.test('wrong options are refused', async () => {
  for (const args of [
    ['--mode', 'dream'],
    ['--branches', '0'],
  ]) {
    const ran = await demo('--json', ...args);
    assert.equal(ran.status, 1);
    assert.equal((lastLine(ran) as Refusal).error.code, 'E_USAGE');
  }
});

suite.finish();
