// The typed client of the helper: connects to the daemon, or starts it first. Used by the command line, the demo and tests. The
// extension speaks the same protocol through vscode-languageclient and uses startHelper from here.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  CancellationTokenSource,
  ConnectionError,
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
  type MessageConnection,
} from 'vscode-jsonrpc/node';
import { BoughError, errorCode } from '../protocol/failure.js';
import type { ErrorData, Notifications, Requests } from '../protocol/rpc.js';
import { places, privateFolder } from '../state/places.js';

export type RequestName = keyof Requests;
export type NotificationName = keyof Notifications;

/** What `$/progress` says while a request runs. */
export interface Progress {
  readonly kind: 'begin' | 'report' | 'end';
  readonly title?: string;
  readonly message?: string;
  readonly percentage?: number;
}

export interface RequestOptions {
  /** Aborting cancels the request in the helper; it then rejects with E_CANCELLED. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface ConnectOptions {
  /** Of this process unless given; decides where the socket lies. */
  readonly env?: NodeJS.ProcessEnv;
  /** Start the helper when none runs. Default true. */
  readonly start?: boolean;
  /** dist/helper.js; found beside this bundle or in the checkout unless given. */
  readonly helper?: string;
  /** Name of this client in the helper's log. */
  readonly client?: string;
}

const START_DEADLINE_MS = 60_000;
const POLL_MS = 20;
/** How long one that has the lock may take until it listens, before it is taken for one that was ending. */
const RELAUNCH_MS = 2000;
const CONNECT_TRIES = 10;

export class HelperClient {
  private nextToken = 1;
  /** Settles when the connection has ended. */
  readonly closed: Promise<void>;
  /** Process id of the helper. */
  pid = 0;
  version = '';

  private constructor(
    private readonly connection: MessageConnection,
    private readonly socket: Socket,
  ) {
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  static async over(socket: Socket, client: string): Promise<HelperClient> {
    const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
    connection.onError(() => socket.destroy());
    const made = new HelperClient(connection, socket);
    connection.listen();
    const { pid, version } = await made.request('bough/hello', { client });
    made.pid = pid;
    made.version = version;
    return made;
  }

  /** Sends one request. Rejects with BoughError: its code, message and fix as the helper said them. */
  async request<M extends RequestName>(
    method: M,
    params: Requests[M][0],
    options: RequestOptions = {},
  ): Promise<Requests[M][1]> {
    const cancel = new CancellationTokenSource();
    const onAbort = () => cancel.cancel();
    if (options.signal?.aborted === true) throw cancelled(method);
    options.signal?.addEventListener('abort', onAbort, { once: true });
    const token = options.onProgress === undefined ? undefined : `client-${this.nextToken++}`;
    const progress =
      token === undefined
        ? undefined
        : this.connection.onNotification('$/progress', (message: { token: unknown; value: Progress }) => {
            if (message.token === token) options.onProgress?.(message.value);
          });
    try {
      const sent = token === undefined ? params : { ...params, workDoneToken: token };
      // Without this a request whose helper dies would wait for ever: vscode-jsonrpc only rejects on dispose.
      return await Promise.race([
        this.connection.sendRequest<Requests[M][1]>(method, sent, cancel.token),
        this.closed.then(() => {
          throw gone(method);
        }),
      ]);
    } catch (error) {
      throw isLoss(error) ? gone(method) : fromResponse(error);
    } finally {
      progress?.dispose();
      options.signal?.removeEventListener('abort', onAbort);
      cancel.dispose();
    }
  }

  /** Calls the listener for each notification of that name. Returns how to stop. */
  on<N extends NotificationName>(name: N, listener: (params: Notifications[N]) => void): () => void {
    let listeners = this.listeners.get(name);
    if (!listeners) {
      const made = new Set<(params: never) => void>();
      this.listeners.set(name, made);
      listeners = made;
      this.connection.onNotification(name, (params: Notifications[N]) => {
        for (const each of made) (each as (params: Notifications[N]) => void)(params);
      });
    }
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  private readonly listeners = new Map<NotificationName, Set<(params: never) => void>>();

  close(): void {
    this.connection.dispose();
    this.socket.destroy();
  }
}

/** Connects to the helper of this person, starting it when none runs. */
export async function connect(options: ConnectOptions = {}): Promise<HelperClient> {
  const env = options.env ?? process.env;
  const client = options.client ?? 'client';
  const { socket } = places(env);
  for (let tries = 1; ; tries++) {
    const found = await tryConnect(socket);
    if (!found && options.start === false) {
      throw new BoughError('E_NO_HELPER', `No helper listens at ${socket}.`, { fix: 'Start one with: bough doctor' });
    }
    try {
      return await HelperClient.over(found ?? (await startHelper(options)), client);
    } catch (error) {
      // One that was just ending has still let us in.
      if (errorCode(error) !== 'E_HELPER_GONE' || tries === CONNECT_TRIES) throw error;
    }
  }
}

/** Starts the daemon and waits until it listens; a daemon that somebody else started meanwhile is as good. */
export async function startHelper(options: ConnectOptions = {}): Promise<Socket> {
  const env = options.env ?? process.env;
  const at = places(env);
  const program = options.helper ?? findHelper(env);
  privateFolder(at.runtime);
  mkdirSync(at.state, { recursive: true, mode: 0o700 });
  closeSync(openSync(at.log, 'a', 0o600));
  const logStart = statSync(at.log).size;
  let child = launch(program, at.log, env);
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    const socket = await tryConnect(at.socket);
    if (socket) return socket;
    // Status 0 means that another daemon has the lock: its socket is about to come, unless it was just ending.
    if (child.ended === 0 && Date.now() - child.startedMs > RELAUNCH_MS) child = launch(program, at.log, env);
    if ((child.ended !== null && child.ended !== 0) || Date.now() > deadline) {
      const said = readFileSync(at.log).subarray(logStart).toString('utf8').trim().split('\n').slice(-5).join('\n');
      const why = child.ended === null ? 'did not listen in time' : `ended (${child.ended})`;
      throw new BoughError('E_HELPER_START', `The helper ${why}.${said === '' ? '' : ` It said: ${said}`}`, {
        fix: `Look at ${at.log} and run: bough doctor`,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

interface Launched {
  readonly startedMs: number;
  /** Exit status, signal, or why it could not be started; null while it runs. */
  ended: number | string | null;
}

function launch(program: string, logFile: string, env: NodeJS.ProcessEnv): Launched {
  const child: Launched = { startedMs: Date.now(), ended: null };
  const log = openSync(logFile, 'a', 0o600);
  try {
    const source = program.endsWith('.ts');
    const started = spawn(process.execPath, [...(source ? ['--import', 'tsx'] : []), program], {
      // Not the caller's folder: a daemon would keep it busy. Sources need tsx from the checkout.
      cwd: source ? dirname(program) : '/',
      // VS Code's own executable is node only with this.
      env: { ...env, ELECTRON_RUN_AS_NODE: '1' },
      detached: true,
      stdio: ['ignore', log, log],
    });
    started.once('exit', (code, signal) => (child.ended = code ?? signal));
    started.once('error', (error) => (child.ended = error.message));
    started.unref();
  } finally {
    closeSync(log);
  }
  return child;
}

/** dist/helper.js: named by BOUGH_HELPER, beside this bundle, or in the checkout's dist/. */
export function findHelper(env: NodeJS.ProcessEnv = process.env): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const named = env['BOUGH_HELPER'];
  const candidates = [
    ...(named === undefined || named === '' ? [] : [named]),
    join(here, 'helper.js'),
    join(here, '..', '..', 'dist', 'helper.js'),
  ];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) {
    throw new BoughError('E_HELPER_START', `The helper's program was not found (looked at ${candidates.join(', ')}).`, {
      fix: 'Build it with: npm run build',
    });
  }
  return found;
}

async function tryConnect(path: string): Promise<Socket | null> {
  const socket = createConnection(path);
  return new Promise((resolve, reject) => {
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      // EAGAIN: its backlog is full, it is there but busy. ECONNRESET: it ended just while we knocked.
      if (['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EAGAIN'].includes(error.code ?? '')) resolve(null);
      else reject(error);
    });
  });
}

function cancelled(method: string): BoughError {
  return new BoughError('E_CANCELLED', `${method} was cancelled.`);
}

function gone(method: string): BoughError {
  return new BoughError('E_HELPER_GONE', `The helper ended before it answered ${method}.`, {
    fix: 'Repeat what you did: the helper is started again by itself.',
  });
}

/** The request could not even be written, or the connection went while it waited. */
function isLoss(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  const lost: number[] = [
    ErrorCodes.MessageWriteError,
    ErrorCodes.PendingResponseRejected,
    ErrorCodes.ConnectionInactive,
  ];
  return error instanceof ResponseError && lost.includes(error.code);
}

function fromResponse(error: unknown): Error {
  if (error instanceof BoughError) return error;
  if (!(error instanceof ResponseError)) return error instanceof Error ? error : new Error(String(error));
  const { code = 'E_INTERNAL', ...detail } = (error.data ?? {}) as Partial<ErrorData>;
  return new BoughError(code, error.message, detail);
}

export { BoughError, errorCode };
