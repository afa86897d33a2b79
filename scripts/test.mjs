// `npm test`: set-up, then every suite that this machine can run, one after another.
//   node scripts/test.mjs [--list] [--only a,b] [--no-setup] [--yes]
// Each suite's output goes to build/test-logs/<suite>.log; the end of it is shown when the suite fails. The last line is
// `N passed, N failed, N skipped` over all suites; the exit status is 0 only if nothing failed.
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { countsOfLastLine, countsOfVitest, sum, summaryLine } from './count.mjs';
import { cleanUpOnce, detachMounts, killProcesses, lastLines, mountsUnder, root, run } from './processes.mjs';
import { ensureVscodeWeb } from './install-vscode-web.mjs';
import { ensureMachines } from './machines.mjs';
import { duration, printError, runMain, SetupError } from './report.mjs';
import { setUp } from './setup.mjs';
import { isPresent, suites } from './suites.mjs';

/**
 * @typedef {import('./count.mjs').Counts} Counts
 * @typedef {import('./suites.mjs').Suite} Suite
 * @typedef {{suite: Suite, counts: Counts, ms: number, remark: string}} Outcome
 */

const logFolder = join(root, 'build', 'test-logs');

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      list: { type: 'boolean', default: false },
      only: { type: 'string' },
      'no-setup': { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
    },
  });
  const chosen = choose(values.only);
  if (values.list) {
    for (const suite of chosen) console.log(`${suite.name.padEnd(12)} ${suite.shows}`);
    return 0;
  }

  if (!values['no-setup'] && !(await prepare(values.yes))) {
    console.log(summaryLine({ passed: 0, failed: 1, skipped: 0 }));
    return 1;
  }
  mkdirSync(logFolder, { recursive: true });
  const withoutMachines = chosen.some((suite) => suite.machines) ? await prepareMachines() : undefined;
  const withoutWeb = chosen.some((suite) => suite.vscodeWeb) ? await installVscodeWeb() : undefined;
  /** @type {Outcome[]} */
  const outcomes = [];
  for (const suite of chosen) {
    const needed = (suite.vscodeWeb ? withoutWeb : undefined) ?? (suite.machines ? withoutMachines : undefined);
    outcomes.push(await runSuite(suite, suite.skip?.() ?? needed));
  }
  printTable(outcomes);
  const total = sum(outcomes.map((o) => o.counts));
  console.log(summaryLine(total));
  return total.failed === 0 && total.passed > 0 ? 0 : 1;
});

/** Set-up; a failure of it is the one failed test of the run. @param {boolean} yes */
async function prepare(yes) {
  try {
    await setUp({ purposes: ['build', 'editor', 'test', 'machine'], yes });
    return true;
  } catch (error) {
    printError(error);
    return false;
  }
}

/** @param {string | undefined} only */
function choose(only) {
  if (only === undefined) return suites;
  return only.split(',').map((name) => {
    const suite = suites.find((s) => s.name === name);
    if (suite) return suite;
    throw new SetupError(
      'BOUGH_TEST_NO_SUCH_SUITE',
      `There is no suite named ${name}`,
      `the suites are ${suites.map((s) => s.name).join(', ')}`,
      'see them with: npm test -- --list',
    );
  });
}

/** @returns {Promise<string | undefined>} why there is no VS Code for the browser on this machine */
async function installVscodeWeb() {
  try {
    await ensureVscodeWeb();
    return undefined;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    printError(error);
    return `${error.code}: ${error.what}`;
  }
}

/**
 * The guest kernel and a place with KVM, ready before the first suite counts its minutes.
 * @returns {Promise<string | undefined>} why there are none on this machine
 */
async function prepareMachines() {
  try {
    const kernel = await ensureMachines();
    process.env['BOUGH_KERNEL'] = kernel.path; // for every suite: none looks for it again
    return undefined;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    printError(error);
    return `${error.code}: ${error.what}`;
  }
}

/** @param {Suite} suite @param {string | undefined} reason why it cannot run here @returns {Promise<Outcome>} */
async function runSuite(suite, reason) {
  console.log(`\n── ${suite.name}: ${suite.shows}`);
  const started = performance.now();
  /** @param {Counts} counts @param {string} [remark] */
  const outcome = (counts, remark = '') => ({ suite, counts, ms: performance.now() - started, remark });

  if (!isPresent(suite)) {
    console.log(`   failed: ${suite.needs} is missing`);
    return outcome({ passed: 0, failed: 1, skipped: 0 }, `${suite.needs} is missing`);
  }
  if (reason !== undefined) {
    console.log(`   skipped: ${reason}`);
    return outcome({ passed: 0, failed: 0, skipped: 1 }, `skipped: ${reason}`);
  }

  const room = makeRoom(suite);
  const [program = '', ...args] = suite.command;
  const result = await run(program, args, {
    env: room.env,
    logFile: room.logFile,
    timeoutMs: suite.minutes * 60_000,
  });
  await room.clear();

  const output = readFileSync(room.logFile, 'utf8');
  const { counts, problem } = judge(suite, result, output, room.vitestReport);
  for (const line of skippedLines(output)) console.log(`   ${line}`);
  if (counts.failed > 0) {
    if (problem !== '') console.log(`   ${problem}`);
    console.log(`   last lines of ${room.logFile}:\n${lastLines(output, 200)}\n`);
  }
  console.log(`   ${summaryLine(counts)} (${duration(performance.now() - started)})`);
  return outcome(counts, problem);
}

/**
 * A suite's own place: temporary files, sockets and state of a run never meet those of another run or of the person.
 * @param {Suite} suite
 */
function makeRoom(suite) {
  const logFile = join(logFolder, `${suite.name}.log`);
  const vitestReport = join(logFolder, `${suite.name}.json`);
  writeFileSync(logFile, '');
  rmSync(vitestReport, { force: true });
  const folder = mkdtempSync(join(tmpdir(), 'bt-')); // short: paths of unix sockets end at 108 bytes
  for (const name of ['tmp', 'run', 'state']) mkdirSync(join(folder, name), { mode: 0o700 });
  // As of /tmp itself: cases that run as another user get to their files by name.
  for (const open of [folder, join(folder, 'tmp')]) chmodSync(open, 0o711);
  const id = randomUUID();
  const env = {
    ...process.env,
    BOUGH_SUITE_RUN: id,
    BOUGH_VITEST_REPORT: vitestReport,
    TMPDIR: join(folder, 'tmp'),
    XDG_RUNTIME_DIR: join(folder, 'run'),
    XDG_STATE_HOME: join(folder, 'state'),
  };
  const clear = cleanUpOnce(async () => {
    for (const left of await killProcesses('BOUGH_SUITE_RUN', id)) {
      console.log(`   left running, killed: ${left.slice(0, 120)}`);
    }
    for (const mount of mountsUnder(folder)) console.log(`   left mounted, detached: ${mount}`);
    // Never remove through a mount: what is behind it may be a person's folder.
    if (detachMounts(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return { logFile, vitestReport, env, clear };
}

/**
 * @param {Suite} suite
 * @param {import('./processes.mjs').RunResult} result
 * @param {string} output
 * @param {string} vitestReport
 * @returns {{counts: Counts, problem: string}}
 */
function judge(suite, result, output, vitestReport) {
  const failed = (/** @type {string} */ problem, /** @type {Counts | undefined} */ counts) => ({
    counts: { passed: counts?.passed ?? 0, failed: Math.max(1, counts?.failed ?? 0), skipped: counts?.skipped ?? 0 },
    problem,
  });
  if (result.spawnError) return failed(`it could not be started: ${result.spawnError.message}`, undefined);
  const counts = read(suite, result, output, vitestReport);
  if (result.timedOut) return failed(`it did not end within ${suite.minutes} minutes`, counts);
  if (!counts) return failed(`it ended without a result (${ending(result)})`, undefined);
  if (result.status !== 0)
    return failed(counts.failed > 0 ? '' : `no test failed, but it ended with ${ending(result)}`, counts);
  return { counts, problem: '' };
}

/** @param {import('./processes.mjs').RunResult} result */
function ending(result) {
  return result.signal === null ? `exit status ${result.status}` : `signal ${result.signal}`;
}

/**
 * @param {Suite} suite
 * @param {import('./processes.mjs').RunResult} result
 * @param {string} output
 * @param {string} vitestReport
 * @returns {Counts | undefined}
 */
function read(suite, result, output, vitestReport) {
  switch (suite.counts) {
    case 'last-line':
      return countsOfLastLine(output);
    case 'vitest':
      return existsSync(vitestReport) ? countsOfVitest(readFileSync(vitestReport, 'utf8')) : undefined;
    case 'status':
      return result.status === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 };
  }
}

/** What a suite says it skipped, and why. @param {string} output */
function skippedLines(output) {
  return output
    .split('\n')
    .filter((line) => /^\s*skip(ped)?\b/i.test(line))
    .map((line) => line.trim())
    .slice(0, 40);
}

/** @param {readonly Outcome[]} outcomes */
function printTable(outcomes) {
  console.log(`\n${'suite'.padEnd(14)}${'passed'.padStart(7)}${'failed'.padStart(8)}${'skipped'.padStart(9)}   time`);
  for (const { suite, counts, ms, remark } of outcomes) {
    const cells = `${String(counts.passed).padStart(7)}${String(counts.failed).padStart(8)}${String(counts.skipped).padStart(9)}`;
    console.log(`${suite.name.padEnd(14)}${cells}   ${duration(ms).padEnd(13)}${remark}`.trimEnd());
  }
}
