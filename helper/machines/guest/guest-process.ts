// A program that runs in a machine, as the host sees it: its output in order and without gaps, its input, its end. It outlives
// connections: guest.ts attaches it again, and both directions go on by byte numbers. Used by guest.ts.
import { errorCode } from '../../protocol/failure.js';
import type { GuestChannel } from './channel.js';
import type { Attached, Exit, GuestEvent, GuestMethod, GuestParams, Started } from './messages.js';

export interface GuestOutput {
  readonly stream: 'stdout' | 'stderr' | 'terminal';
  /** Number of its first byte in all the output of the process. */
  readonly at: number;
  readonly data: Buffer;
}

/** The guest is told that it may send more when what this returns has settled. */
export type OutputListener = (output: GuestOutput) => void | Promise<void>;

/** Asks the guest on whatever connection there is, or is next. */
export type Ask = <M extends GuestMethod>(method: M, params: GuestParams[M]) => Promise<unknown>;

/** Bytes of input in one request; its line stays below the protocol's limit. */
const INPUT_PIECE = 96 * 1024;
/** Requests for input that are under way: the guest keeps at most 1 MiB waiting. */
const INPUT_AHEAD = 4;

interface InputPiece {
  readonly at: number;
  readonly data: Buffer;
  readonly end: boolean;
  readonly done: () => void;
  readonly failed: (error: Error) => void;
}

export class GuestProcess {
  readonly number: number;
  readonly pid: number;
  /** Settles when it has ended and all that it wrote before has been delivered. */
  readonly exited: Promise<Exit>;
  /** Settles when nobody can write output any more, and all has been delivered. */
  readonly ended: Promise<void>;
  /** Bytes of output that did not fit into its ring while nobody read. */
  lost = 0;

  private next: number;
  private inputAt: number;
  private channel: GuestChannel | null = null;
  private delivery: Promise<void> = Promise.resolve();
  private readonly queue: InputPiece[] = [];
  private readonly underWay: InputPiece[] = [];
  private settleExit!: { resolve: (exit: Exit) => void; reject: (error: Error) => void };
  private settleEnd!: { resolve: () => void; reject: (error: Error) => void };
  private failure: Error | null = null;

  constructor(
    started: Pick<Started, 'process' | 'pid' | 'from' | 'received'>,
    private readonly onOutput: OutputListener,
    private readonly ask: Ask,
  ) {
    this.number = started.process;
    this.pid = started.pid;
    this.next = started.from;
    this.inputAt = started.received;
    this.exited = new Promise((resolve, reject) => (this.settleExit = { resolve, reject }));
    this.ended = new Promise((resolve, reject) => (this.settleEnd = { resolve, reject }));
    // Who does not wait for one of them must not be ended by it.
    this.exited.catch(() => undefined);
    this.ended.catch(() => undefined);
  }

  /** How far its output has come: give it to `Guest.attach` to go on from here, in this machine or in one forked from it. */
  get position(): { readonly from: number; readonly received: number } {
    return { from: this.next, received: this.inputAt };
  }

  /** Settles when the bytes have gone into the program's pipe or terminal. */
  async write(data: Buffer): Promise<void> {
    const pieces: Promise<void>[] = [];
    for (let start = 0; start < data.length; start += INPUT_PIECE) {
      pieces.push(this.push(data.subarray(start, start + INPUT_PIECE), false));
    }
    await Promise.all(pieces);
  }

  /** Closes the program's standard input after all that was written. */
  async end(): Promise<void> {
    await this.push(Buffer.alloc(0), true);
  }

  async resize(rows: number, columns: number): Promise<void> {
    await this.ask('resize', { process: this.number, rows, columns });
  }

  /** To its process group, or to itself alone. */
  async signal(signal: NodeJS.Signals, to: 'group' | 'process' = 'group'): Promise<void> {
    await this.ask('signal', { process: this.number, signal, to });
  }

  /** It has ended and its output is not needed any more. Once more changes nothing. */
  async forget(): Promise<void> {
    try {
      await this.ask('forget', { process: this.number });
    } catch (error) {
      if (errorCode(error) !== 'E_NO_PROCESS') throw error;
    }
  }

  /** @internal Attached on a new connection: what was under way is sent once more, the guest leaves out what it has. */
  attached(channel: GuestChannel, state: Pick<Attached, 'from'>): void {
    this.channel = channel;
    if (state.from > this.next) {
      this.lost += state.from - this.next;
      this.next = state.from;
    }
    this.queue.unshift(...this.underWay.splice(0));
    this.pump();
  }

  /** Why nothing more will come, although it may not have ended. */
  get failed(): Error | null {
    return this.failure;
  }

  /** @internal */
  detached(): void {
    this.channel = null;
  }

  /** @internal Nothing more will come. */
  fail(error: Error): void {
    if (this.failure !== null) return;
    this.failure = error;
    this.channel = null;
    for (const piece of [...this.underWay.splice(0), ...this.queue.splice(0)]) piece.failed(error);
    this.settleExit.reject(error);
    this.settleEnd.reject(error);
  }

  /** @internal True after the last event that there can be. */
  take(event: GuestEvent): boolean {
    switch (event.event) {
      case 'output':
        this.deliver(event.stream, event.at, Buffer.from(event.data, 'base64'));
        return false;
      case 'exit':
        void this.delivery.then(() => this.settleExit.resolve(event.exit));
        return false;
      case 'end':
        void this.delivery.then(() => this.settleEnd.resolve());
        return true;
    }
  }

  private deliver(stream: GuestOutput['stream'], at: number, bytes: Buffer): void {
    const data = at < this.next ? bytes.subarray(this.next - at) : bytes;
    if (data.length === 0) return;
    const from = Math.max(at, this.next);
    this.lost += from - this.next;
    const to = from + data.length;
    this.next = to;
    this.delivery = this.delivery
      .then(() => this.onOutput({ stream, at: from, data }))
      .then(
        () => this.channel?.notify('ack', { process: this.number, to }),
        (error: unknown) => this.fail(error instanceof Error ? error : new Error(String(error))),
      );
  }

  private push(data: Buffer, end: boolean): Promise<void> {
    if (this.failure !== null) return Promise.reject(this.failure);
    const at = this.inputAt;
    this.inputAt += data.length;
    return new Promise((done, failed) => {
      this.queue.push({ at, data, end, done, failed });
      this.pump();
    });
  }

  private pump(): void {
    const channel = this.channel;
    if (channel === null) return;
    while (this.underWay.length < INPUT_AHEAD) {
      const piece = this.queue.shift();
      if (piece === undefined) return;
      this.underWay.push(piece);
      void this.send(channel, piece);
    }
  }

  private async send(channel: GuestChannel, piece: InputPiece): Promise<void> {
    const { at, data, end } = piece;
    try {
      await channel.request('input', {
        process: this.number,
        at,
        data: data.toString('base64'),
        ...(end ? { end } : {}),
      });
    } catch (error) {
      if (!channel.isAlive) return; // it is sent again when the next connection is there
      this.settle(piece);
      piece.failed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.settle(piece);
    piece.done();
    this.pump();
  }

  private settle(piece: InputPiece): void {
    const index = this.underWay.indexOf(piece);
    if (index >= 0) this.underWay.splice(index, 1);
  }
}
