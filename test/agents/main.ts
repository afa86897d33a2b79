// The sample repository and the example agent, run for real: `tsx test/agents/main.ts`.
import assert from 'node:assert/strict';
import { lstatSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { runProgram, type ProgramResult } from '../cli/run-program.js';
import { Suite } from '../cli/suite.js';
import { failingTests, makeSample } from '../fixtures/make-sample.js';

const root = join(import.meta.dirname, '..', '..');
const program = join(root, 'examples', 'agents', 'repair', 'repair.mjs');
const suite = new Suite();

function sample(): string {
  const folder = suite.folder('sample');
  makeSample(folder);
  return folder;
}

/** The agent in a folder, with nothing of this process's own environment that could steer it. */
function repair(folder: string, args: readonly string[], env: Record<string, string> = {}): Promise<ProgramResult> {
  const clean = { PATH: process.env['PATH'] ?? '', HOME: folder, npm_config_cache: join(folder, '.git', 'npm') };
  return runProgram([process.execPath, program, ...args], { cwd: folder, env: { ...clean, ...env } });
}

async function git(folder: string, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await runProgram(['git', '-C', folder, ...args]);
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

await suite.test('the sample has what a copy tends to lose', () => {
  const folder = sample();
  const at = (path: string) => join(folder, path);
  assert.equal(readlinkSync(at('docs/latest.md')), 'CHANGES.md');
  assert.equal(lstatSync(at('scripts/report.sh')).mode & 0o777, 0o755);
  assert.deepEqual(readdirSync(at('inbox')), []);
  assert.ok(readFileSync(at('data/orders.csv'), 'utf8').includes('\r\n'));
  assert.equal(readFileSync(at('assets/logo.png')).subarray(1, 4).toString(), 'PNG');
  assert.ok(readFileSync(at('.env'), 'utf8').startsWith('SHOP_NAME='));
  assert.ok(lstatSync(at('node_modules/@types/plural-word/index.d.ts')).isFile());
});

await suite.test('its history is the same each time, and its folder is clean for git', async () => {
  const [one, other] = [sample(), sample()];
  assert.equal(await git(one, 'rev-list', '--count', 'HEAD'), '3');
  assert.equal(await git(one, 'rev-parse', 'HEAD'), await git(other, 'rev-parse', 'HEAD'));
  assert.equal(await git(one, 'status', '--porcelain'), '');
});

await suite.test('exactly the named tests of the sample fail', async () => {
  const folder = sample();
  const { status, stdout } = await runProgram([process.execPath, '--test', '--test-reporter=tap'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
  });
  assert.equal(status, 1);
  const failed = [...stdout.matchAll(/^not ok \d+ - (.*)$/gm)].map(([, name]) => name);
  assert.deepEqual(failed.sort(), Object.values(failingTests).flat().sort());
  assert.match(stdout, /^# tests 16$/m);
});

await suite.test('types of the sample and of the agent hold', async () => {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const folder = sample();
  const roots = `${join(root, 'node_modules', '@types')},node_modules/@types`;
  const ofSample = await runProgram([process.execPath, tsc, '-p', '.', '--typeRoots', roots, '--types', 'node'], {
    cwd: folder,
  });
  assert.equal(ofSample.stdout, '');
  const ofAgent = await runProgram([process.execPath, tsc, '-p', join(root, 'examples', 'agents', 'repair')]);
  assert.equal(ofAgent.stdout, '');
});

await suite.test("the agent's own unit tests pass", async () => {
  const tests = join(root, 'examples', 'agents', 'repair', 'parts.test.mjs');
  const { status, stdout } = await runProgram([process.execPath, '--test-reporter=tap', tests]);
  assert.equal(status, 0, stdout);
  assert.match(stdout, /^# pass [1-9]/m);
});

for (const hint of ['', 'constants first, smallest change', 'random seed 7']) {
  await suite.test(`repairs the sample with the hint "${hint}"`, async () => {
    const folder = sample();
    const { status, stdout, stderr } = await repair(folder, hint ? ['--hint', hint] : []);
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /^done: npm test passes$/m);
    assert.match(stdout, /^3 changes, \d+ tries, /m);
    const changed = await git(folder, 'diff', '--name-only');
    assert.deepEqual(changed.split('\n'), ['src/money.js', 'src/pages.js', 'src/schedule.js']);
    assert.equal(await git(folder, 'diff', '--shortstat'), '3 files changed, 3 insertions(+), 3 deletions(-)');
    const again = await repair(folder, []);
    assert.equal(again.status, 0);
    assert.match(again.stdout, /^0 changes, 0 tries, /m);
  });
}

await suite.test('hints lead to different repairs', async () => {
  const scheduleAfter = async (...args: string[]) => {
    const folder = sample();
    const { status, stdout } = await repair(folder, args);
    assert.equal(status, 0, stdout);
    return readFileSync(join(folder, 'src', 'schedule.js'), 'utf8');
  };
  const near = await scheduleAfter('--hint', 'comparisons first', '--seed', '1');
  const edge = await scheduleAfter('--hint', 'off by one', '--seed', '1');
  assert.notEqual(near, edge);
  assert.equal(edge, await scheduleAfter('--hint', 'off by one', '--seed', '1'), 'the same seed does the same');
});

await suite.test('takes hint and seed from its branch', async () => {
  const { stdout } = await repair(sample(), ['--budget', '0'], { BOUGH_HINT: 'random, please', BOUGH_BRANCH: 'b2' });
  // 2402036085 is FNV-1a of "b2".
  assert.match(stdout, /strategy: random, seed 2402036085$/m);
});

await suite.test('says so when no single change helps, and leaves the code as it was', async () => {
  const folder = sample();
  writeFileSync(
    join(folder, 'test', 'pages.test.js'),
    "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport { label } from '../src/pages.js';\n" +
      "test('impossible', () => assert.equal(label(7, 1, 3), 'one to three'));\n",
  );
  const { status, stdout } = await repair(folder, []);
  assert.equal(status, 1, stdout);
  assert.match(stdout, /no single change repairs test\/pages\.test\.js/);
  assert.match(stdout, /^not done: npm test fails$/m);
  assert.equal(await git(folder, 'diff', '--name-only', 'src/pages.js'), '');
});

await suite.test('stops at its time budget', async () => {
  const { status, stdout } = await repair(sample(), ['--budget', '0']);
  assert.equal(status, 3, stdout);
});

await suite.test('is told to end: no half-tried change stays', async () => {
  const folder = sample();
  const { spawn } = await import('node:child_process');
  const child = spawn(process.execPath, [program, '--hint', 'negation'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.on('exit', (status) => resolve(status)));
  await new Promise<void>((resolve) => {
    let seen = '';
    child.stdout.on('data', (part: Buffer) => {
      seen += part.toString('utf8');
      if (/try {3}2/.test(seen)) resolve();
    });
    child.on('exit', () => resolve());
  });
  child.kill('SIGTERM');
  assert.equal(await ended, 130);
  const changed = (await git(folder, 'diff', '--unified=0')).split('\n').filter((line) => /^[+-](?![+-])/.test(line));
  // At most what it had kept: money.js with its right repair.
  assert.ok(
    changed.every((line) => /cents [-+] tax\(/.test(line)),
    changed.join('\n'),
  );
});

await suite.test('wrong use has its own status and says what to do', async () => {
  const empty = await repair(suite.folder('empty'), []);
  assert.equal(empty.status, 2);
  assert.match(empty.stderr, /has no package\.json with \*\.test\.js files/);
  const wrong = await repair(sample(), ['--seed', 'x']);
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /--seed takes a whole number/);
});

suite.finish();
