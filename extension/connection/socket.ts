// Where the helper listens, and how to get a connection to it: connect, or start the daemon and connect. Used by helper.ts.
import { spawn } from 'node:child_process';
import { createConnection, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import path from 'node:path';

/** How long a freshly started daemon may take until it answers. */
const START_DEADLINE_MS = 60_000;

/** The helper's socket: `$XDG_RUNTIME_DIR/bough/helper.sock`, or below `/tmp/bough-<uid>` where there is no runtime folder. */
export function helperSocketPath(env: NodeJS.ProcessEnv = process.env): string {
  const runtime = env['XDG_RUNTIME_DIR'];
  const folder = runtime ? path.join(runtime, 'bough') : `/tmp/bough-${userInfo().uid}`;
  return path.join(folder, 'helper.sock');
}

/** One attempt to connect; undefined when nobody listens. */
export function tryConnect(socketPath: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

/**
 * Connects to the helper; starts it when nobody listens. The daemon outlives this window, so it is detached and owns no
 * descriptor of ours.
 * @throws Error when it cannot be started or does not answer in time.
 */
export async function connectOrStart(distFolder: string, socketPath: string): Promise<Socket> {
  const running = await tryConnect(socketPath);
  if (running) return running;
  let failure: Error | undefined;
  let exit: string | undefined;
  const daemon = spawn(process.execPath, [path.join(distFolder, 'helper.js')], {
    cwd: '/',
    detached: true,
    stdio: 'ignore',
    // VS Code's own executable is Electron: this makes it plain Node. NODE_OPTIONS of an editor's host are not the daemon's.
    env: { ...process.env, ELECTRON_RUN_AS_NODE: '1', NODE_OPTIONS: '' },
  });
  daemon.once('error', (error) => (failure = error));
  daemon.once('exit', (code, signal) => (exit = signal ?? `exit status ${code ?? 'unknown'}`));
  daemon.unref();
  const deadline = Date.now() + START_DEADLINE_MS;
  while (Date.now() < deadline) {
    const socket = await tryConnect(socketPath);
    if (socket) return socket;
    if (failure) throw new Error(`The helper could not be started: ${failure.message}`);
    // Exit status 0 is the loser of a race between two windows: the other daemon is about to listen.
    if (exit !== undefined && exit !== 'exit status 0') throw new Error(`The helper ended while starting (${exit}).`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`The helper did not answer on ${socketPath}.`);
}
