// The lasting link to one store: attaches to its boughfs or starts it, and does so again when it has died, so that services above
// just ask. Used by helper/branches.
import { errorCode, BoughError } from '../protocol/failure.js';
import type { BoughfsEvent } from '../protocol/boughfs.js';
import { Boughfs } from './boughfs.js';
import { startBoughfs, type BoughfsOptions } from './boughfs-process.js';
import type { Method, Params, Result } from './methods.js';

const BUSY_DEADLINE_MS = 15_000;
const RETRY_MS = [0, 200, 1000, 3000, 10_000];
/** Waiting for these makes no sense: a person has to act. */
const FATAL = new Set(['E_BASE_GONE', 'E_STORE_DAMAGED', 'E_STORE_VERSION', 'E_NO_BOUGHFS']);
/** Asking twice is as good as once. */
const IDEMPOTENT = new Set<Method>([
  'hello',
  'branch.list',
  'branch.info',
  'branch.diff',
  'branch.stat',
  'branch.readdir',
  'branch.read',
  'branch.conflicts',
  'commit.list',
  'store.status',
  'store.check',
  'store.sync',
]);

export interface StoreListener {
  event(event: BoughfsEvent): void;
  /** boughfs ended by itself: what ran on its mounts has lost its files. */
  lost(): void;
  /** It is back, with its mounts. */
  restored(): void;
}

export class StoreLink {
  private client: Boughfs | null = null;
  private opening: Promise<Boughfs> | null = null;
  private ending = false;
  /** Why it cannot be served now. */
  problem: BoughError | null = null;
  /** Process id of boughfs, 0 while there is none. */
  pid = 0;

  constructor(
    private readonly options: BoughfsOptions,
    private readonly listener: StoreListener,
  ) {}

  /** Attaches or starts. Safe to call at any time; several calls share one attempt. */
  async open(): Promise<void> {
    await this.connection();
  }

  get isOpen(): boolean {
    return this.client?.isAlive === true;
  }

  /** Asks boughfs, waiting for it to come back where that is all that is needed. */
  async request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
    const client = await this.connection();
    try {
      return await client.request(method, params);
    } catch (error) {
      if (errorCode(error) !== 'E_BOUGHFS_GONE' || !IDEMPOTENT.has(method) || this.ending) throw error;
      return await (await this.connection()).request(method, params);
    }
  }

  /** Ends boughfs: it folds its log and unmounts. Branches stay. */
  async stop(): Promise<void> {
    this.ending = true;
    const client = this.client ?? (await this.opening?.catch(() => null)) ?? null;
    if (client?.isAlive !== true || this.pid === 0) return;
    try {
      process.kill(this.pid, 'SIGTERM');
    } catch {
      return;
    }
    await client.closed;
  }

  /** Leaves boughfs running for the next helper. */
  detach(): void {
    this.ending = true;
    this.client?.close();
  }

  private connection(): Promise<Boughfs> {
    if (this.ending) return Promise.reject(new BoughError('E_SHUTDOWN', 'The helper is ending.'));
    if (this.client?.isAlive === true) return Promise.resolve(this.client);
    this.opening ??= this.attach().finally(() => (this.opening = null));
    return this.opening;
  }

  private async attach(): Promise<Boughfs> {
    try {
      const client = (await this.tryConnect()) ?? (await this.startAndConnect());
      this.client = client;
      this.problem = null;
      client.onEvent((event) => this.listener.event(event));
      void client.closed.then(() => this.onClosed(client));
      this.pid = (await client.request('hello', {})).pid;
      await client.request('subscribe', {});
      return client;
    } catch (error) {
      this.problem = error instanceof BoughError ? error : new BoughError('E_BOUGHFS_START', String(error));
      throw this.problem;
    }
  }

  private async startAndConnect(): Promise<Boughfs> {
    const deadline = Date.now() + BUSY_DEADLINE_MS;
    for (;;) {
      let busy: unknown = null;
      try {
        await startBoughfs(this.options);
      } catch (error) {
        // The one before may be folding its log, or about to listen.
        if (errorCode(error) !== 'E_STORE_BUSY' || Date.now() > deadline) throw error;
        busy = error;
      }
      const client = await this.tryConnect();
      if (client) return client;
      if (busy === null && Date.now() > deadline) {
        throw new BoughError(
          'E_BOUGHFS_START',
          `boughfs said it is ready but does not listen at ${this.options.at.socket}.`,
          {
            fix: `See ${this.options.at.log}`,
          },
        );
      }
      await pause(100);
    }
  }

  private async tryConnect(): Promise<Boughfs | null> {
    try {
      return await Boughfs.connect(this.options.at.socket);
    } catch {
      return null;
    }
  }

  private onClosed(client: Boughfs): void {
    if (this.client !== client) return;
    this.client = null;
    this.pid = 0;
    if (this.ending) return;
    this.listener.lost();
    void this.restore();
  }

  private async restore(): Promise<void> {
    for (const delay of RETRY_MS) {
      await pause(delay);
      if (this.ending) return;
      try {
        await this.open();
        this.listener.restored();
        return;
      } catch (error) {
        if (FATAL.has(errorCode(error))) break;
      }
    }
    // `problem` says it; the next request tries again.
    this.listener.restored();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
