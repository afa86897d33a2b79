// The JSON-RPC face: one connection of a client, with LSP framing so that vscode-languageclient can carry it. Thin: checks the
// request, asks the service, translates the error. Used by daemon.ts.
import type { Socket } from 'node:net';
import {
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
  type CancellationToken,
  type MessageConnection,
} from 'vscode-jsonrpc/node';
import { z } from 'zod';
import { BoughError, errorCode } from '../protocol/failure.js';
import { diskFailure } from '../state/disk-failure.js';
import type { ErrorData, Notifications, Requests } from '../protocol/rpc.js';
import type { BranchService } from '../branches/service.js';
import { watchProgress, type ProgressTarget } from './progress.js';
import { schemas } from './schemas.js';

/** LSP's own codes (RequestFailed, RequestCancelled). */
const REQUEST_FAILED = -32803;
const REQUEST_CANCELLED = -32800;
/** A client that does not hang up must not keep the helper from ending. */
const FAREWELL_MS = 1000;
/** A client that does not read is cut off: it gets everything it missed when it comes back. */
const UNSENT_LIMIT = 64 * 1024 * 1024;

export interface Daemon {
  readonly service: BranchService;
  readonly version: string;
  readonly log: (message: string) => void;
  /** Answers first, ends then. */
  shutdown(): void;
}

type Handlers = {
  readonly [M in keyof Requests]: (params: Requests[M][0], signal: AbortSignal) => Promise<Requests[M][1]>;
};

export class ClientConnection {
  private readonly connection: MessageConnection;
  private readonly terminals = new Map<string, () => void>();
  private readonly target: { -readonly [K in keyof ProgressTarget]: ProgressTarget[K] };
  private readonly running = new Set<AbortController>();

  constructor(
    private readonly socket: Socket,
    private readonly daemon: Daemon,
  ) {
    this.connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
    this.target = { connection: this.connection, offered: false, cancels: new Map() };
    this.connection.onError(() => socket.destroy());
    socket.once('close', () => this.end());
    this.lifeOfLsp();
    const handlers = this.handlers();
    for (const method of Object.keys(handlers) as (keyof Requests)[]) this.serve(method, handlers);
    this.connection.listen();
  }

  changed(folder: string): void {
    this.notify('bough/changed', { folder });
  }

  /** Settles when everything that was answered so far has been sent, or the client takes nothing more. */
  async finish(): Promise<void> {
    // An answer is written in a later turn than the one in which its handler returned.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.socket.destroyed) return;
    const closed = new Promise<void>((resolve) => this.socket.once('close', () => resolve()));
    const patience = setTimeout(() => this.socket.destroy(), FAREWELL_MS);
    this.socket.end();
    await closed;
    clearTimeout(patience);
  }

  /** What a language client says besides our own requests. The end of one client is not the end of the helper. */
  private lifeOfLsp(): void {
    this.connection.onRequest('initialize', (params: unknown) => {
      this.target.offered = initializeParams.safeParse(params).data?.capabilities?.window?.workDoneProgress === true;
      return { capabilities: {}, serverInfo: { name: 'bough-helper', version: this.daemon.version } };
    });
    this.connection.onRequest('shutdown', () => null);
    this.connection.onNotification('exit', () => {
      this.socket.end();
    });
    this.connection.onNotification('window/workDoneProgress/cancel', (params: unknown) => {
      const token = cancelParams.safeParse(params).data?.token;
      if (token !== undefined) this.target.cancels.get(String(token))?.();
    });
  }

  private handlers(): Handlers {
    const { service } = this.daemon;
    return {
      'bough/hello': async ({ client }) => {
        this.daemon.log(`client ${client}`);
        return { version: this.daemon.version, pid: process.pid };
      },
      'bough/open': (params) => service.openWorkspace(params),
      'bough/workspaces': () => service.workspaces(),
      'bough/agents': () => service.agents(),
      'bough/start': (params) => service.start(params),
      'bough/branch': (params) => service.branch(params),
      'bough/list': (params) => service.list(params),
      'bough/diff': (params) => service.diff(params),
      'bough/stat': (params) => service.stat(params),
      'bough/readdir': (params) => service.readdir(params),
      'bough/read': (params) => service.read(params),
      'bough/patch': (params) => service.patch(params),
      'bough/exec': (params, signal) => service.exec(params, signal),
      'bough/checks': (params, signal) => service.checks(params, signal),
      'bough/conflicts': (params) => service.conflicts(params),
      'bough/resolve': (params) => service.resolve(params),
      'bough/revert': (params) => service.revert(params),
      'bough/take': (params) => service.take(params),
      'bough/commit': (params) => service.commit(params),
      'bough/undo': (params) => service.undo(params),
      'bough/rebase': (params) => service.rebase(params),
      'bough/abort': (params) => service.abort(params),
      'bough/stop': (params) => service.stop(params),
      'bough/rename': (params) => service.rename(params),
      'bough/mount': (params) => service.mount(params),
      'bough/terminal/open': (params) => this.openTerminal(params),
      'bough/terminal/input': (params) => service.input(params),
      'bough/terminal/resize': (params) => service.resize(params),
      'bough/doctor': (params) => service.doctor(params),
      'bough/gc': () => service.gc(),
      'bough/audit': (params) => service.audit(params),
      'bough/shutdown': async () => {
        this.daemon.shutdown();
        return {};
      },
    };
  }

  private serve(method: keyof Requests, handlers: Handlers): void {
    const handle = handlers[method] as (params: unknown, signal: AbortSignal) => Promise<unknown>;
    this.connection.onRequest(method, async (params: unknown, token: CancellationToken) => {
      const abort = new AbortController();
      // Whoever asked for a command wants its output; checks are kept for everyone and go on.
      if (method === 'bough/exec') this.running.add(abort);
      const cancelling = token.onCancellationRequested(() => abort.abort());
      const progress = tokenParams.safeParse(params).data?.workDoneToken;
      const endProgress = watchProgress(this.target, method, progress, () => abort.abort());
      try {
        return await handle(schemas[method].parse(params ?? {}), abort.signal);
      } catch (error) {
        return this.failure(method, error);
      } finally {
        endProgress();
        cancelling.dispose();
        this.running.delete(abort);
      }
    });
  }

  private async openTerminal(params: Requests['bough/terminal/open'][0]): Promise<Requests['bough/terminal/open'][1]> {
    // The answer with the replay goes first: what comes meanwhile waits for it.
    const early: (() => void)[] = [];
    let answered = false;
    const later = (send: () => void) => {
      if (answered) send();
      else early.push(send);
    };
    const terminal = params.branch;
    const { result, stop } = await this.daemon.service.watchTerminal(params, {
      data: (data) => later(() => this.notify('bough/terminal/data', { terminal, data })),
      exit: (exitCode) => later(() => this.notify('bough/terminal/exit', { terminal, exitCode })),
    });
    this.terminals.get(terminal)?.();
    this.terminals.set(terminal, stop);
    setImmediate(() => {
      answered = true;
      for (const send of early) send();
    });
    return result;
  }

  private notify<N extends keyof Notifications>(name: N, params: Notifications[N]): void {
    if (this.socket.destroyed) return;
    if (this.socket.writableLength > UNSENT_LIMIT) {
      this.daemon.log('a client does not read what it is sent and is cut off');
      this.socket.destroy();
      return;
    }
    void this.connection.sendNotification(name, params).catch(() => undefined);
  }

  private failure(method: string, thrown: unknown): ResponseError<ErrorData> {
    const error = diskFailure(thrown) ?? thrown;
    if (error instanceof z.ZodError) {
      const issue = error.issues[0];
      const where = issue === undefined || issue.path.length === 0 ? '' : ` (${issue.path.join('.')})`;
      const message = `${method} was asked in a wrong way${where}: ${issue?.message ?? 'unknown'}.`;
      const fix = 'Use the same version of the editor, the command line and the helper.';
      return new ResponseError(ErrorCodes.InvalidParams, message, { code: 'E_BAD_REQUEST', fix });
    }
    if (error instanceof BoughError) {
      const number = error.code === 'E_CANCELLED' ? REQUEST_CANCELLED : REQUEST_FAILED;
      return new ResponseError(number, error.message, error.data);
    }
    const message = error instanceof Error ? error.message : String(error);
    this.daemon.log(`${method}: ${error instanceof Error ? (error.stack ?? message) : message}`);
    const code = errorCode(error);
    // Cancelled by the signal itself, before anything ran.
    if (error instanceof Error && error.name === 'AbortError') {
      return new ResponseError(REQUEST_CANCELLED, `${method} was cancelled.`, { code: 'E_CANCELLED' });
    }
    return new ResponseError(REQUEST_FAILED, message, { code, fix: 'Run: bough doctor' });
  }

  private end(): void {
    for (const stop of this.terminals.values()) stop();
    this.terminals.clear();
    for (const abort of this.running) abort.abort();
    this.connection.dispose();
  }
}

const tokenParams = z.object({ workDoneToken: z.union([z.string(), z.number()]).optional() });
const cancelParams = z.object({ token: z.union([z.string(), z.number()]) });
const initializeParams = z.object({
  capabilities: z.object({ window: z.object({ workDoneProgress: z.boolean().optional() }).optional() }).optional(),
});
