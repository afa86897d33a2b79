// A place where commands find a KVM that works: this computer where it has one, else an emulated machine. Used by
// scripts/kvm-host.mjs and by tests:
//   const host = await openKvmHost();
//   const { status, stdout } = await host.run(['build/release/boughvm', '--version']);
//   await host.close();
// BOUGH_KVM_HOST=NAME has everybody use the machine that `kvm-host.mjs --keep NAME` keeps instead of booting another one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, mkdirSync, openSync, closeSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants as osConstants } from 'node:os';
import { join } from 'node:path';
import { root } from '../processes.mjs';
import { SetupError } from '../report.mjs';
import { encodeFrame, encodeStart, FrameReader, FrameType } from './frames.mjs';
import { connectTo, keeperSocket } from './keeper.mjs';
import { cacheFolder } from './kernel.mjs';
import { bootMachine } from './machine.mjs';

const defaultMemoryMib = 3072;

/** How long a command may take to end once it is told to. */
export const graceMs = 15_000;

/**
 * @typedef {object} CommandOptions
 * @property {string} [cwd] this process's if absent
 * @property {Readonly<Record<string, string | undefined>>} [env] the whole environment; this process's if absent
 * @property {number} [timeoutMs] after which it is killed
 *
 * @typedef {object} Running a command that has been started
 * @property {(bytes: Uint8Array) => void} write to its standard input
 * @property {() => void} endInput
 * @property {(signal: NodeJS.Signals) => void} kill its process group
 * @property {Promise<{status: number | null, signal: NodeJS.Signals | null}>} ended
 *
 * @typedef {object} Listener
 * @property {(bytes: Buffer) => void} output
 * @property {(bytes: Buffer) => void} error
 *
 * @typedef {object} KvmHost
 * @property {'direct' | 'emulated' | 'kept'} kind
 * @property {(command: readonly string[], options: CommandOptions, listener: Listener) => Promise<Running>} start
 * @property {(command: readonly string[], options?: CommandOptions & {input?: string}) =>
 *   Promise<{status: number | null, signal: NodeJS.Signals | null, stdout: string, stderr: string}>} run to its end
 * @property {() => Promise<void>} close ends an emulated machine; a kept one stays
 */

/** Whether a vCPU runs on this very computer. A device node that opens proves little inside another machine. */
export function hasKvm() {
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch {
    return false;
  }
  const addon = join(root, 'build', 'release', 'bough.node');
  if (!existsSync(addon)) {
    throw new SetupError(
      'BOUGH_KVM_HOST_NOT_BUILT',
      'Whether KVM works here cannot be told',
      `${addon} is missing`,
      'npm run build',
    );
  }
  return createRequire(import.meta.url)(addon).probeKvm().vcpuRuns === true;
}

/**
 * @param {{keep?: string, shares?: readonly string[], memoryMib?: number}} [options] `keep`: the name of a kept machine,
 *   started if it is not up; `shares`: folders that commands may change besides the checkout
 * @returns {Promise<KvmHost>}
 */
export async function openKvmHost({ keep = process.env['BOUGH_KVM_HOST'], shares = [], memoryMib } = {}) {
  if (hasKvm()) return hostOf('direct', startDirect, () => Promise.resolve());
  const folders = [...new Set([root, ...shares].map((path) => realpathSync(path)))];
  if (keep !== undefined && keep !== '') return openKept(keep, folders, memoryMib ?? defaultMemoryMib);

  const machine = await bootMachine({ shares: folders, memoryMib: memoryMib ?? defaultMemoryMib });
  /** @type {Map<number, (frame: import('./frames.mjs').Frame) => void>} */
  const listeners = new Map();
  machine.onFrame((frame) => listeners.get(frame.id)?.(frame));
  void machine.ended.then(() => {
    for (const [id, listen] of listeners) listen({ id, type: FrameType.end, data: Buffer.from([0, 9]) });
  });
  let lastId = 0;
  /** @type {KvmHost['start']} */
  const start = (command, options, listener) => {
    const id = ++lastId;
    return Promise.resolve(
      startOver(command, options, listener, {
        send: (type, data) => machine.send(encodeFrame(id, type, data)),
        listen: (onFrame) => {
          listeners.set(id, onFrame);
          return () => listeners.delete(id);
        },
      }),
    );
  };
  return hostOf('emulated', start, machine.stop);
}

/** @param {string} name @param {readonly string[]} folders @param {number} memoryMib @returns {Promise<KvmHost>} */
async function openKept(name, folders, memoryMib) {
  const path = keeperSocket(name);
  const there = await connectTo(path);
  if (there === undefined) await startKeeper(name, folders, memoryMib);
  else there.destroy();
  /** @type {KvmHost['start']} */
  const start = async (command, options, listener) => {
    const socket = await connectTo(path);
    if (socket === undefined) throw gone(name);
    const reader = new FrameReader();
    return startOver(command, options, listener, {
      send: (type, data) => void socket.write(encodeFrame(1, type, data)),
      listen: (onFrame) => {
        let over = false;
        socket.on('data', (bytes) => reader.push(bytes).forEach(onFrame));
        socket.on('error', () => undefined);
        socket.on('close', () => over || onFrame({ id: 1, type: FrameType.end, data: Buffer.from([0, 9]) }));
        return () => {
          over = true;
          socket.destroy();
        };
      },
    });
  };
  return hostOf('kept', start, () => Promise.resolve());
}

/** @param {string} name */
function gone(name) {
  return new SetupError(
    'BOUGH_KVM_HOST_GONE',
    `The kept machine ${name} is not up`,
    'nobody listens on its socket',
    `read ${keeperLog(name)}`,
  );
}

/** @param {string} name */
function keeperLog(name) {
  return join(cacheFolder(), 'kvm-host', 'kept', `${name}.log`);
}

/** @param {string} name @param {readonly string[]} folders @param {number} memoryMib */
async function startKeeper(name, folders, memoryMib) {
  const log = keeperLog(name);
  mkdirSync(join(log, '..'), { recursive: true, mode: 0o700 });
  const file = openSync(log, 'a');
  const program = new URL('keeper.mjs', import.meta.url).pathname;
  const keeper = spawn(process.execPath, [program, name, String(memoryMib), ...folders], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  const exited = once(keeper, 'exit');
  for (;;) {
    const socket = await connectTo(keeperSocket(name));
    if (socket !== undefined) {
      socket.destroy();
      break;
    }
    const pause = new Promise((resolve) => setTimeout(resolve, 50, 'again'));
    if ((await Promise.race([exited, pause])) !== 'again' && keeper.exitCode !== 0) throw gone(name);
  }
  keeper.unref();
}

/** Ends a kept machine. @param {string} name @returns {Promise<boolean>} whether there was one */
export async function stopKept(name) {
  const socket = await connectTo(keeperSocket(name));
  if (socket === undefined) return false;
  socket.write(encodeFrame(1, FrameType.stop));
  socket.resume();
  await once(socket, 'close');
  return true;
}

/**
 * @param {readonly string[]} command
 * @param {CommandOptions} options
 * @param {Listener} listener
 * @param {{send: (type: number, data?: Uint8Array) => void,
 *   listen: (onFrame: (frame: import('./frames.mjs').Frame) => void) => (() => void)}} link
 * @returns {Running}
 */
function startOver(command, { cwd = process.cwd(), env = process.env, timeoutMs }, listener, link) {
  let end = () => {};
  /** @type {NodeJS.Timeout | undefined} */
  let unanswered;
  const kill = (/** @type {NodeJS.Signals} */ signal) => {
    link.send(FrameType.signal, Buffer.from([osConstants.signals[signal]]));
    // A machine may be too busy or broken to answer; who gave up on the command must not wait for it.
    if (signal === 'SIGKILL') unanswered ??= setTimeout(() => end(), graceMs);
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => kill('SIGKILL'), timeoutMs);
  /** @type {Running['ended']} */
  const ended = new Promise((resolve) => {
    const onFrame = (/** @type {{type: number, data: Buffer}} */ { type, data }) => {
      if (type === FrameType.output) listener.output(data);
      if (type === FrameType.error) listener.error(data);
      if (type !== FrameType.end) return;
      clearTimeout(timer);
      clearTimeout(unanswered);
      forget();
      const [status = 0, number = 0] = data;
      resolve(number === 0 ? { status, signal: null } : { status: null, signal: signalName(number) });
    };
    const forget = link.listen(onFrame);
    end = () => onFrame({ type: FrameType.end, data: Buffer.from([0, osConstants.signals.SIGKILL]) });
  });
  link.send(FrameType.start, encodeStart({ cwd, env: machineEnvironment(env), command }));
  return {
    write: (bytes) => link.send(FrameType.input, bytes),
    endInput: () => link.send(FrameType.inputEnd),
    kill,
    ended,
  };
}

/** @param {number} number @returns {NodeJS.Signals} */
function signalName(number) {
  const found = Object.entries(osConstants.signals).find(([, value]) => value === number);
  return /** @type {NodeJS.Signals} */ (found?.[0] ?? 'SIGKILL');
}

/** The caller's, but its temporary places are the machine's own. @param {Readonly<Record<string, string | undefined>>} env */
function machineEnvironment(env) {
  const mine = { ...env, TMPDIR: '/tmp', XDG_RUNTIME_DIR: '/run/bough', XDG_STATE_HOME: '/tmp/state' };
  /** @type {[string, string][]} */
  const set = Object.entries(mine).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return Object.fromEntries(set);
}

/** @type {KvmHost['start']} */
async function startDirect([program = '', ...args], { cwd, env = process.env, timeoutMs }, listener) {
  const child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const kill = (/** @type {NodeJS.Signals} */ signal) => {
    try {
      process.kill(-(/** @type {number} */ (child.pid)), signal);
    } catch {
      // it has ended
    }
  };
  child.stdout.on('data', listener.output);
  child.stderr.on('data', listener.error);
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close');
  await once(child, 'spawn');
  const timer = timeoutMs === undefined ? undefined : setTimeout(kill, timeoutMs, 'SIGKILL');
  const ended = closed.then(([status, signal]) => {
    clearTimeout(timer);
    return { status, signal };
  });
  return { write: (bytes) => void child.stdin.write(bytes), endInput: () => void child.stdin.end(), kill, ended };
}

/**
 * @param {KvmHost['kind']} kind
 * @param {KvmHost['start']} start
 * @param {() => Promise<void>} close
 * @returns {KvmHost}
 */
function hostOf(kind, start, close) {
  /** @type {KvmHost['run']} */
  const run = async (command, { input, ...options } = {}) => {
    /** @type {Buffer[]} */
    const output = [];
    /** @type {Buffer[]} */
    const error = [];
    const running = await start(command, options, {
      output: (bytes) => output.push(bytes),
      error: (bytes) => error.push(bytes),
    });
    if (input !== undefined) running.write(Buffer.from(input));
    running.endInput();
    const result = await running.ended;
    return { ...result, stdout: Buffer.concat(output).toString(), stderr: Buffer.concat(error).toString() };
  };
  return { kind, start, run, close };
}
