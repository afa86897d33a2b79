// The one connection to the helper: requests, notifications, and a new connection when the helper dies. Owned by
// BoughContext; every feature asks through it.
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  WorkDoneProgress,
  type LanguageClientOptions,
} from 'vscode-languageclient/node';
import type { Notifications, Requests } from '../../helper/protocol/rpc.js';
import { BoughError, toBoughError } from './error.js';
import { connectOrStart, helperPlaces, tryConnect } from './socket.js';

export type RequestName = keyof Requests;

/** A progress notification that the person looks at, and their Cancel button. */
export interface Watched {
  readonly token: vscode.CancellationToken;
  readonly report: (message: string) => void;
}
type Params<N extends RequestName> = Requests[N][0];
type Result<N extends RequestName> = Requests[N][1];

/** Requests that only look: safe to send again when the connection was lost in between. */
const REPEATABLE: ReadonlySet<RequestName> = new Set<RequestName>([
  'bough/hello',
  'bough/open',
  'bough/workspaces',
  'bough/agents',
  'bough/list',
  'bough/diff',
  'bough/stat',
  'bough/readdir',
  'bough/read',
  'bough/patch',
  'bough/conflicts',
  'bough/doctor',
  'bough/audit',
]);

const RECONNECT_DELAYS_MS = [200, 500, 1000, 2000, 5000];

interface Live {
  readonly client: LanguageClient;
  readonly socket: Socket;
  lost: boolean;
}

export class Helper implements vscode.Disposable {
  private readonly connected = new vscode.EventEmitter<void>();
  private readonly disconnected = new vscode.EventEmitter<void>();
  private readonly changed = new vscode.EventEmitter<Notifications['bough/changed']>();
  private readonly terminalData = new vscode.EventEmitter<Notifications['bough/terminal/data']>();
  private readonly terminalExit = new vscode.EventEmitter<Notifications['bough/terminal/exit']>();
  private live: Promise<Live> | undefined;
  private reconnectTimer: NodeJS.Timeout | undefined;
  private failures = 0;
  private disposed = false;

  /** Each time a connection stands: at first and after the helper died. Whoever shows state reads it again. */
  readonly onDidConnect = this.connected.event;
  readonly onDidDisconnect = this.disconnected.event;
  readonly onDidChange = this.changed.event;
  readonly onTerminalData = this.terminalData.event;
  readonly onTerminalExit = this.terminalExit.event;

  constructor(
    private readonly distFolder: string,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** True when a helper is running already (it is not started by this). */
  async isRunning(): Promise<boolean> {
    if (this.live) return true;
    const socket = await tryConnect(helperPlaces().socket);
    socket?.destroy();
    return socket !== undefined;
  }

  /**
   * Asks the helper; connects (and starts it) first if need be.
   * @throws BoughError with the helper's code, or E_HELPER_START, E_HELPER_GONE.
   */
  async request<N extends RequestName>(name: N, params: Params<N>, watched?: Watched): Promise<Result<N>> {
    for (let attempt = 1; ; attempt++) {
      const live = await this.connect();
      const progress = watched && this.followProgress(live.client, watched);
      try {
        // An undefined token would travel as a second parameter.
        if (!watched || !progress) return await live.client.sendRequest<Result<N>>(name, params);
        const sent = { ...params, workDoneToken: progress.workDoneToken };
        return await live.client.sendRequest<Result<N>>(name, sent, watched.token);
      } catch (thrown) {
        if (watched?.token.isCancellationRequested) throw new vscode.CancellationError();
        if (!live.lost && !live.socket.destroyed && live.client.isRunning()) throw toBoughError(thrown);
        this.lost(live);
        this.log.warn(`${name}: the connection to the helper was lost`);
        if (attempt === 1 && REPEATABLE.has(name)) continue;
        throw new BoughError(
          'E_HELPER_GONE',
          `The helper ended while it worked on ${name.slice('bough/'.length)}.`,
          'It is being started again: look at the Branches view, then repeat the command if it had no effect.',
        );
      } finally {
        progress?.end.dispose();
      }
    }
  }

  private followProgress(
    client: LanguageClient,
    { report }: Watched,
  ): { workDoneToken: string; end: vscode.Disposable } {
    const workDoneToken = randomUUID();
    const end = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind !== 'end' && value.message !== undefined) report(value.message);
    });
    return { workDoneToken, end };
  }

  private connect(): Promise<Live> {
    if (this.disposed) return Promise.reject(new BoughError('E_EXTENSION', 'The window is closing.'));
    if (this.live) return this.live;
    clearTimeout(this.reconnectTimer);
    const live = this.open();
    this.live = live;
    live.then(
      () => {
        this.failures = 0;
        this.connected.fire();
      },
      () => {
        if (this.live === live) this.live = undefined;
      },
    );
    return live;
  }

  private async open(): Promise<Live> {
    let socket: Socket;
    try {
      socket = await connectOrStart(this.distFolder, helperPlaces());
    } catch (error) {
      this.log.error(toBoughError(error).line);
      throw error;
    }
    const options: LanguageClientOptions = {
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
      },
    };
    const client = new LanguageClient(
      'bough',
      'Bough',
      () => Promise.resolve({ reader: socket, writer: socket, detached: true }),
      options,
    );
    client.onNotification('bough/changed', (params: Notifications['bough/changed']) => this.changed.fire(params));
    client.onNotification('bough/terminal/data', (params: Notifications['bough/terminal/data']) =>
      this.terminalData.fire(params),
    );
    client.onNotification('bough/terminal/exit', (params: Notifications['bough/terminal/exit']) =>
      this.terminalExit.fire(params),
    );
    const live: Live = { client, socket, lost: false };
    socket.once('close', () => this.lost(live));
    try {
      await client.start();
      const { version, pid } = await client.sendRequest<Result<'bough/hello'>>('bough/hello', {
        client: `vscode ${vscode.version}`,
      });
      this.log.info(`connected to helper ${version}, process ${pid}`);
    } catch (error) {
      socket.destroy();
      throw new BoughError('E_HELPER_START', `The helper did not greet: ${toBoughError(error).message}`);
    }
    return live;
  }

  private lost(live: Live): void {
    if (live.lost || this.disposed) return;
    live.lost = true;
    live.socket.destroy();
    this.log.warn('the connection to the helper is lost');
    this.live = undefined;
    this.disconnected.fire();
    this.reconnectLater();
  }

  private reconnectLater(): void {
    const delay = RECONNECT_DELAYS_MS[Math.min(this.failures, RECONNECT_DELAYS_MS.length - 1)];
    this.failures++;
    clearTimeout(this.reconnectTimer);
    this.reconnectTimer = setTimeout(() => {
      this.connect().catch(() => {
        // Said in the log already. A helper that cannot start is not tried for ever; the next command tries again.
        if (!this.disposed && this.failures < 8) this.reconnectLater();
      });
    }, delay);
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.reconnectTimer);
    // Only the socket: the daemon lives on.
    this.live?.then(
      ({ client, socket }) => {
        socket.destroy();
        void client.dispose().catch(() => undefined);
      },
      () => undefined,
    );
    for (const emitter of [this.connected, this.disconnected, this.changed, this.terminalData, this.terminalExit]) {
      emitter.dispose();
    }
  }
}
