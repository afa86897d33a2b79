// One connection to bough-init: requests out, answers and events in. When it ends everything that waits is rejected; guest.ts
// connects again.
import type { Socket } from 'node:net';
import { BoughError } from '../../protocol/failure.js';
import {
  answer as answerShape,
  event as eventShape,
  results,
  type GuestEvent,
  type GuestMethod,
  type GuestParams,
  type GuestResult,
} from './messages.js';

/** The protocol's own limit for one line, with its newline. */
export const LINE_LIMIT = 256 * 1024;

interface Pending {
  readonly method: GuestMethod;
  readonly taken: ((value: unknown) => void) | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class GuestChannel {
  private readonly pending = new Map<number, Pending>();
  private readonly parts: Buffer[] = [];
  private partsSize = 0;
  private nextId = 1;
  private alive = true;
  private whyEnded = 'the connection ended';
  /** Settles once, when the connection has ended for whatever reason. */
  readonly closed: Promise<void>;

  constructor(
    private readonly socket: Socket,
    private readonly onEvent: (event: GuestEvent) => void,
  ) {
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.alive = false;
        for (const { reject } of this.pending.values()) reject(this.gone());
        this.pending.clear();
        resolve();
      });
    });
    socket.on('error', (error) => (this.whyEnded = error.message)); // 'close' follows
    socket.on('end', () => socket.destroy());
    socket.on('data', (data) => this.take(data));
    socket.resume();
  }

  get isAlive(): boolean {
    return this.alive;
  }

  /**
   * Asks and waits. The guest's refusals arrive as BoughError with its code, a lost connection as E_GUEST_GONE.
   * @param taken called with the result before any event that came after it
   */
  request<M extends GuestMethod>(
    method: M,
    params: GuestParams[M],
    taken?: (result: GuestResult<M>) => void,
  ): Promise<GuestResult<M>> {
    if (!this.alive) return Promise.reject(this.gone());
    const id = this.nextId++;
    const line = lineOf({ id, method, params });
    if (line instanceof BoughError) return Promise.reject(line);
    return new Promise<GuestResult<M>>((resolve, reject) => {
      this.pending.set(id, {
        method,
        taken: taken as ((value: unknown) => void) | undefined,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      this.socket.write(line);
    });
  }

  /** Says something that needs no answer. */
  notify<M extends GuestMethod>(method: M, params: GuestParams[M]): void {
    const line = lineOf({ method, params });
    if (this.alive && typeof line === 'string') this.socket.write(line);
  }

  /** Ends it as the fork of a machine would: at once. */
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
      if (this.socket.destroyed) return;
    }
    if (rest.length === 0) return;
    this.parts.push(rest);
    this.partsSize += rest.length;
    if (this.partsSize >= LINE_LIMIT) this.distrust('a line is longer than the protocol allows');
  }

  private dispatch(line: string): void {
    let json: unknown;
    try {
      json = JSON.parse(line);
    } catch {
      this.distrust('a line is no JSON');
      return;
    }
    if (typeof json === 'object' && json !== null && 'event' in json) {
      const event = eventShape.safeParse(json);
      if (!event.success) {
        this.distrust('an event has the wrong shape');
        return;
      }
      this.onEvent(event.data);
      return;
    }
    const answer = answerShape.safeParse(json);
    if (!answer.success) {
      this.distrust('an answer has the wrong shape');
      return;
    }
    const { id, error, result } = answer.data;
    if (id === null) {
      this.distrust(error?.message ?? 'it did not understand a request');
      return;
    }
    const waiting = this.pending.get(id);
    if (!waiting) return;
    this.pending.delete(id);
    if (error !== undefined) {
      waiting.reject(new BoughError(error.code, error.message));
      return;
    }
    const checked = results[waiting.method].safeParse(result);
    if (checked.success) {
      waiting.taken?.(checked.data);
      waiting.resolve(checked.data);
      return;
    }
    this.distrust(`the answer to ${waiting.method} has the wrong shape`);
    waiting.reject(this.gone());
  }

  /** Not bough-init, or a guest that was taken over: nothing that comes after this can be used. */
  private distrust(why: string): void {
    this.whyEnded = why;
    this.socket.destroy();
  }

  private gone(): BoughError {
    return new BoughError('E_GUEST_GONE', `The connection to the machine ended: ${this.whyEnded}.`, {
      fix: 'Programs in the machine go on; connect again.',
    });
  }
}

function lineOf(message: object): string | BoughError {
  const line = `${JSON.stringify(message)}\n`;
  if (Buffer.byteLength(line) <= LINE_LIMIT) return line;
  return new BoughError('E_TOO_BIG', 'The request is longer than 256 KiB.', {
    fix: 'Give the program a shorter command line and environment.',
  });
}
