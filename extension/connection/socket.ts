// Where the helper listens, and how to get a connection to it: connect, or start the daemon and connect. Used by helper.ts.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { homedir, userInfo } from 'node:os';
import path from 'node:path';
import { BoughError } from './error.js';

/** How long a freshly started daemon may take until it answers. */
const START_DEADLINE_MS = 60_000;

export interface HelperPlaces {
  readonly socket: string;
  /** What the daemon says, also while it starts. */
  readonly log: string;
}

/** Where the helper listens and logs, by the XDG base directories; below /tmp where there is no runtime folder. */
export function helperPlaces(env: NodeJS.ProcessEnv = process.env): HelperPlaces {
  const absolute = (value: string | undefined) => (value?.startsWith('/') === true ? value : undefined);
  const runtime = absolute(env['XDG_RUNTIME_DIR']);
  const state = absolute(env['XDG_STATE_HOME']) ?? path.join(env['HOME'] ?? homedir(), '.local', 'state');
  return {
    socket: path.join(
      runtime === undefined ? `/tmp/bough-${userInfo().uid}` : path.join(runtime, 'bough'),
      'helper.sock',
    ),
    log: path.join(state, 'bough', 'helper.log'),
  };
}

/** One attempt to connect; undefined when nobody listens. */
export function tryConnect(socketPath: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
    socket.once('error', () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

/** Starts the daemon detached: it outlives this window and owns no descriptor of ours but its log. */
function startDaemon(program: string, logFile: string): ChildProcess {
  mkdirSync(path.dirname(logFile), { recursive: true, mode: 0o700 });
  const log = openSync(logFile, 'a', 0o600);
  try {
    return spawn(process.execPath, [program], {
      cwd: '/',
      detached: true,
      stdio: ['ignore', log, log],
      // VS Code's own executable is Electron: this makes it plain Node. NODE_OPTIONS of an editor's host are not the daemon's.
      env: { ...process.env, ELECTRON_RUN_AS_NODE: '1', NODE_OPTIONS: '' },
    });
  } finally {
    closeSync(log);
  }
}

/**
 * Connects to the helper; starts it when nobody listens.
 * @throws BoughError E_HELPER_START when it cannot be started or does not answer in time, with what it said.
 */
export async function connectOrStart(distFolder: string, places: HelperPlaces): Promise<Socket> {
  const running = await tryConnect(places.socket);
  if (running) return running;
  const logStart = existsSync(places.log) ? statSync(places.log).size : 0;
  const failed = (how: string) => {
    const said = readFileSync(places.log).subarray(logStart).toString('utf8').trim().split('\n').slice(-5).join(' ');
    return new BoughError(
      'E_HELPER_START',
      `The helper ${how}.${said === '' ? '' : ` It said: ${said}`}`,
      `Look at ${places.log}.`,
    );
  };
  const daemon = startDaemon(path.join(distFolder, 'helper.js'), places.log);
  let ended: string | undefined;
  daemon.once('error', (error) => (ended = error.message));
  // Exit status 0 is the loser of a race between two windows: the other daemon is about to listen.
  daemon.once(
    'exit',
    (code, signal) => (ended = code === 0 ? undefined : (signal ?? `exit status ${code ?? 'unknown'}`)),
  );
  daemon.unref();
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    const socket = await tryConnect(places.socket);
    if (socket) return socket;
    if (ended !== undefined) throw failed(`ended while starting (${ended})`);
    if (Date.now() > deadline) throw failed(`does not answer on ${places.socket}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
