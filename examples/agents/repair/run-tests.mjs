// Runs one test file of node:test, or the package's own `npm test`, and says what failed. Used by search.mjs and repair.mjs.
import { spawn } from 'node:child_process';

/**
 * @typedef {object} TestResult
 * @property {readonly { name: string, line: number }[]} failed
 * @property {number} passed
 * @property {boolean} timedOut
 * @property {boolean} broken it ended without a single test result, as after a syntax error
 */

/**
 * @param {string} folder
 * @param {string} file path in the folder
 * @param {number} timeoutMs
 * @returns {Promise<TestResult>}
 */
export async function runTestFile(folder, file, timeoutMs) {
  const { output, timedOut } = await run(folder, [process.execPath, '--test-reporter=tap', file], timeoutMs);
  /** @type {{ name: string, line: number }[]} */
  const failed = [];
  let passed = 0;
  for (const block of output.split(/^(?=\s*(?:not )?ok \d+)/m)) {
    const [, bad, name] = /^\s*(not )?ok \d+ - ([^\n]*)/.exec(block) ?? [];
    if (name === undefined || /# (?:SKIP|TODO)/.test(name)) continue;
    // The location is `file:line:column`; a suite's own line only sums up what is inside it.
    if (/failureType: 'subtestsFailed'/.test(block)) continue;
    if (bad) failed.push({ name, line: Number(/location: '.*:(\d+):\d+'/.exec(block)?.[1] ?? 1) });
    else passed++;
  }
  return { failed, passed, timedOut, broken: failed.length + passed === 0 };
}

/**
 * @param {string} folder
 * @param {number} timeoutMs
 * @returns {Promise<boolean>} whether `npm test` ended with status 0
 */
export async function runWholeSuite(folder, timeoutMs) {
  const { status } = await run(folder, ['npm', 'test'], timeoutMs);
  return status === 0;
}

/**
 * @param {string} folder
 * @param {readonly string[]} command
 * @param {number} timeoutMs
 * @returns {Promise<{ status: number | null, output: string, timedOut: boolean }>}
 */
function run(folder, [program = '', ...args], timeoutMs) {
  return new Promise((resolve, reject) => {
    // Under a test runner of its own, node:test would answer in another form than asked for.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    // A group of its own, so that what a test started ends with it.
    const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    /** @type {Buffer[]} */
    const parts = [];
    let timedOut = false;
    child.stdout.on('data', (/** @type {Buffer} */ part) => parts.push(part));
    child.stderr.resume();
    const timer = setTimeout(() => {
      timedOut = true;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It ended in this moment.
      }
    }, timeoutMs);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (status) => {
      clearTimeout(timer);
      resolve({ status, output: Buffer.concat(parts).toString('utf8'), timedOut });
    });
  });
}
