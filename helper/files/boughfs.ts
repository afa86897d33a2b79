// A client of one boughfs' control socket: JSON lines out, answers and events back. Used by store-link.ts, which keeps it
// connected, and by tests that talk to boughfs directly. Knows nothing of the process behind the socket.
import { createConnection, type Socket } from 'node:net';
import type { BoughfsEvent, Conflict, WirePath } from '../protocol/boughfs.js';
import { BoughError } from '../protocol/failure.js';
import type { Method, Params, Result } from './methods.js';

/** The protocol's own limit for one line. */
const LINE_LIMIT = 16 * 1024 * 1024;
/** Answers hold up to 8 MiB of base64 and long diffs; beyond this the other side is not boughfs. */
const ANSWER_LIMIT = 256 * 1024 * 1024;

interface WireError {
  readonly code: string;
  readonly message: string;
  readonly errno?: number;
  readonly data?: { readonly conflicts?: readonly Conflict[]; readonly paths?: readonly WirePath[] };
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class Boughfs {
  private readonly pending = new Map<number, Pending>();
  private readonly listeners = new Set<(event: BoughfsEvent) => void>();
  private readonly parts: Buffer[] = [];
  private partsSize = 0;
  private nextId = 1;
  private alive = true;
  /** Settles once, when the connection has ended for whatever reason. */
  readonly closed: Promise<void>;

  private constructor(private readonly socket: Socket) {
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.alive = false;
        for (const { reject } of this.pending.values()) reject(gone());
        this.pending.clear();
        resolve();
      });
    });
    socket.on('error', () => undefined); // 'close' follows and tells everyone
    socket.on('data', (data) => this.take(data));
  }

  /** Connects; rejects with Node's error (ENOENT, ECONNREFUSED) when nobody listens. */
  static async connect(path: string): Promise<Boughfs> {
    const socket = createConnection(path);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    socket.removeAllListeners('error');
    return new Boughfs(socket);
  }

  get isAlive(): boolean {
    return this.alive;
  }

  /** Asks and waits for the answer. Errors of boughfs arrive as BoughError with its code; a lost connection as E_BOUGHFS_GONE. */
  request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
    if (!this.alive) return Promise.reject(gone());
    const id = this.nextId++;
    const line = `${JSON.stringify({ id, method, params })}\n`;
    if (Buffer.byteLength(line) > LINE_LIMIT) {
      return Promise.reject(
        new BoughError('E_TOO_BIG', `The request ${method} is longer than 16 MiB.`, {
          fix: 'Work on fewer paths at a time.',
        }),
      );
    }
    return new Promise<Result<M>>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.socket.write(line);
    });
  }

  /** Calls the listener for each event; send `subscribe` first. Returns how to stop. */
  onEvent(listener: (event: BoughfsEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.socket.destroy();
  }

  private take(data: Buffer): void {
    let rest = data;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.parts.push(rest.subarray(0, end));
      const line = Buffer.concat(this.parts).toString('utf8');
      this.parts.length = 0;
      this.partsSize = 0;
      rest = rest.subarray(end + 1);
      if (line !== '') this.dispatch(line);
    }
    if (rest.length === 0) return;
    this.parts.push(rest);
    this.partsSize += rest.length;
    if (this.partsSize > ANSWER_LIMIT) this.socket.destroy();
  }

  private dispatch(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.socket.destroy(); // Not boughfs, or a torn stream: nothing after this can be trusted.
      return;
    }
    if (typeof message !== 'object' || message === null) return;
    if ('event' in message) {
      for (const listener of this.listeners) listener(message as BoughfsEvent);
      return;
    }
    if (!('id' in message) || typeof message.id !== 'number') return;
    const waiting = this.pending.get(message.id);
    if (!waiting) return;
    this.pending.delete(message.id);
    if ('error' in message) waiting.reject(fromWire(message.error as WireError));
    else waiting.resolve('result' in message ? message.result : {});
  }
}

/** Whether something that speaks the control protocol answers at this socket. */
export async function isAlive(path: string): Promise<boolean> {
  try {
    const client = await Boughfs.connect(path);
    try {
      await client.request('hello', {});
      return true;
    } finally {
      client.close();
    }
  } catch {
    return false;
  }
}

function gone(): BoughError {
  return new BoughError('E_BOUGHFS_GONE', 'The file server of this workspace (boughfs) ended before it answered.', {
    fix: 'It is started again by itself. Look at the list of branches, then repeat what you did.',
  });
}

function fromWire(error: WireError): BoughError {
  return new BoughError(error.code, error.message, {
    ...(error.data?.conflicts === undefined ? {} : { conflicts: error.data.conflicts }),
    ...(error.data?.paths === undefined ? {} : { paths: error.data.paths }),
  });
}
