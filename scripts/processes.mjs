// Child processes that never outlive their caller unnoticed: each runs in a process group of its own, has a deadline, and
// its group is killed when the deadline passes or this process is asked to end. Used by set-up, the test runner and start.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** @type {Set<number>} process groups that are alive */
const groups = new Set();
let watching = false;

function watchForSignals() {
  if (watching) return;
  watching = true;
  for (const [signal, status] of /** @type {const} */ ([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])) {
    process.on(signal, () => {
      for (const group of groups) signalGroup(group, 'SIGTERM');
      setTimeout(() => {
        for (const group of groups) signalGroup(group, 'SIGKILL');
        process.exit(status);
      }, 2000);
    });
  }
}

/** @param {number} group @param {NodeJS.Signals} signal */
export function signalGroup(group, signal) {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
  }
}

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd] the checkout's root if absent
 * @property {NodeJS.ProcessEnv} [env] the whole environment
 * @property {string} [logFile] where stdout and stderr go, appended; otherwise they are collected
 * @property {boolean} [show] let the child write to our own stdout and stderr
 * @property {number} [timeoutMs]
 *
 * @typedef {object} RunResult
 * @property {number | null} status exit status; null when a signal ended it
 * @property {NodeJS.Signals | null} signal
 * @property {boolean} timedOut
 * @property {string} output stdout and stderr as they came, when neither logFile nor show is given
 * @property {Error} [spawnError] why it could not be started at all
 */

/**
 * Runs a program to its end. Does not throw for a failing program; the caller looks at `status`.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<RunResult>}
 */
export async function run(program, args, options = {}) {
  watchForSignals();
  const log = options.logFile === undefined ? undefined : openSync(options.logFile, 'a');
  const sink = log ?? (options.show ? 'inherit' : 'pipe');
  const child = spawn(program, args, {
    cwd: options.cwd ?? root,
    env: options.env ?? process.env,
    stdio: ['ignore', sink, sink],
    detached: true, // a process group of its own
  });
  if (log !== undefined) closeSync(log);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
  }
  const exited = once(child, 'exit');
  exited.catch(() => undefined); // a program that cannot be started is told by 'spawn' below
  const closed = new Promise((resolve) => child.once('close', resolve));
  try {
    await once(child, 'spawn');
  } catch (error) {
    const spawnError = /** @type {Error} */ (error);
    return { status: null, signal: null, timedOut: false, output: String(error), spawnError };
  }
  const group = /** @type {number} */ (child.pid);
  groups.add(group);

  let timedOut = false;
  /** @type {NodeJS.Timeout | undefined} */
  let killer;
  const deadline = setTimeout(
    () => {
      timedOut = true;
      signalGroup(group, 'SIGTERM');
      killer = setTimeout(() => signalGroup(group, 'SIGKILL'), 5000);
    },
    options.timeoutMs ?? 2 ** 31 - 1,
  );
  // 'exit', not 'close': a daemon that inherited the pipe would keep it open for ever.
  const [status, signal] = /** @type {[number | null, NodeJS.Signals | null]} */ (await exited);
  clearTimeout(deadline);
  clearTimeout(killer);
  if (sink === 'pipe') {
    // Read what is still in the pipes, but do not wait for a daemon that holds them.
    const enough = setTimeout(() => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, 1000);
    await closed;
    clearTimeout(enough);
  }
  signalGroup(group, 'SIGKILL'); // what the program left in its group
  groups.delete(group);
  return { status, signal, timedOut, output };
}

/**
 * Processes that carry `name=value` in the environment they were started with: descendants that left the process group.
 * @param {string} name
 * @param {string} value
 * @returns {{pid: number, command: string}[]}
 */
export function processesWithEnvironment(name, value) {
  const wanted = `${name}=${value}`;
  const found = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      if (!readFileSync(`/proc/${entry}/environ`, 'latin1').split('\0').includes(wanted)) continue;
      const command = readFileSync(`/proc/${entry}/cmdline`, 'latin1').split('\0').join(' ').trim();
      if (command !== '') found.push({ pid: Number(entry), command });
    } catch {
      // Gone, or another person's.
    }
  }
  return found;
}

/** @param {string} text @param {number} count @returns {string} */
export function lastLines(text, count) {
  return text.trimEnd().split('\n').slice(-count).join('\n');
}
