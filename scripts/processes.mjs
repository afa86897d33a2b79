// Child processes that never outlive their caller unnoticed: each runs in a process group of its own, has a deadline, and
// its group is killed when the deadline passes or this process is asked to end. Used by set-up, the test runner and start.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** @type {Set<number>} process groups that are alive */
const groups = new Set();
/** @type {Set<() => Promise<void>>} what must not stay behind when this process is asked to end */
const cleanups = new Set();
let watching = false;
let ending = false;

function watchForSignals() {
  if (watching) return;
  watching = true;
  process.on('SIGINT', () => void endAfterSignal(130));
  process.on('SIGTERM', () => void endAfterSignal(143));
  process.on('SIGHUP', () => void endAfterSignal(129));
}

/** @param {number} status */
async function endAfterSignal(status) {
  if (ending) return;
  ending = true;
  for (const group of groups) signalGroup(group, 'SIGTERM');
  for (let waited = 0; groups.size > 0 && waited < 5000; waited += 50) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (const group of groups) signalGroup(group, 'SIGKILL');
  for (const cleanup of cleanups) await cleanup();
  process.exit(status);
}

/** The caller's work stops here once a signal came: nothing new is started while everything is being ended. */
function unlessEnding() {
  return ending ? new Promise(() => undefined) : Promise.resolve();
}

/**
 * Has `cleanup` run when a signal ends this process.
 * @param {() => Promise<void>} cleanup
 * @returns {() => Promise<void>} runs it now, and no more later
 */
export function cleanUpOnce(cleanup) {
  watchForSignals();
  cleanups.add(cleanup);
  return async () => {
    if (cleanups.delete(cleanup)) await cleanup();
  };
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
 * @property {(text: string) => void} [onOutput] hears what is collected, as it comes
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
  await unlessEnding();
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
    stream?.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      output += text;
      options.onOutput?.(text);
    });
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
  await unlessEnding();
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

/**
 * Kills the processes that carry `name=value`, and says which they were.
 * @param {string} name
 * @param {string} value
 * @returns {Promise<string[]>} their commands
 */
export async function killProcesses(name, value) {
  const commands = [];
  // Again, because a process may have started another one while it was being killed.
  for (let round = 0; round < 10; round++) {
    const left = processesWithEnvironment(name, value);
    if (left.length === 0) break;
    for (const { pid, command } of left) {
      try {
        process.kill(pid, 'SIGKILL');
        commands.push(`${pid} ${command}`);
      } catch {
        // ended by itself meanwhile
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return commands;
}

/** Mount points inside a folder, deepest first. @param {string} folder */
export function mountsUnder(folder) {
  const unescape = (/** @type {string} */ path) =>
    path.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8)));
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => unescape(line.split(' ')[4] ?? ''))
    .filter((path) => path.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length);
}

/** Detaches all mounts inside a folder. @param {string} folder @returns {boolean} whether none is left */
export function detachMounts(folder) {
  for (const mount of mountsUnder(folder)) {
    if (process.getuid?.() === 0) spawnSync('umount', ['-l', mount]);
    else spawnSync('fusermount3', ['-u', '-z', mount]);
  }
  return mountsUnder(folder).length === 0;
}

/**
 * @typedef {object} Service a program that runs until it is stopped
 * @property {Promise<string>} ended how it ended, should it end
 * @property {() => Promise<void>} stop ends its process group
 * @property {string} logFile
 */

/**
 * Starts a program that stays. Its process group ends with `stop`, and with this process.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{env: NodeJS.ProcessEnv, logFile: string}} options
 * @returns {Promise<Service>}
 */
export async function startService(program, args, options) {
  watchForSignals();
  const log = openSync(options.logFile, 'a');
  const child = spawn(program, args, { cwd: root, env: options.env, stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  const ended = new Promise((/** @type {(how: string) => void} */ resolve) => {
    child.once('exit', (status, signal) => {
      groups.delete(/** @type {number} */ (child.pid));
      const how = signal === null ? `exit status ${status}` : `signal ${signal}`;
      void unlessEnding().then(() => resolve(how));
    });
  });
  await once(child, 'spawn');
  const group = /** @type {number} */ (child.pid);
  groups.add(group);
  const stop = async () => {
    signalGroup(group, 'SIGTERM');
    const killer = setTimeout(() => signalGroup(group, 'SIGKILL'), 10_000);
    await ended;
    clearTimeout(killer);
    signalGroup(group, 'SIGKILL'); // what it left in its group
    groups.delete(group);
  };
  return { ended, stop, logFile: options.logFile };
}
