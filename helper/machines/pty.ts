// A pseudoterminal whose master side this process owns: what a program prints comes as events, what a person types goes in.
// Used by process-machine.ts.
import { closeSync, constants, openSync, write } from 'node:fs';
import { ReadStream } from 'node:tty';
import { openPty, resizePty } from '../native/addon.js';

export class PseudoTerminal {
  /** The program's side: give it to the child as its standard streams, then call `closeProgramSide`. */
  readonly programSide: number;
  private readonly stream: ReadStream;
  private readonly waiting: Buffer[] = [];
  private writing = false;
  private open = true;
  /** Settles when the last program on it has closed it. */
  readonly ended: Promise<void>;

  constructor(rows: number, columns: number) {
    const { master, slave } = openPty(rows, columns);
    this.master = master;
    try {
      // O_NOCTTY: the helper must not get a terminal by accident, its hang-up would end it.
      this.programSide = openSync(slave, constants.O_RDWR | constants.O_NOCTTY);
      this.stream = new ReadStream(master);
    } catch (error) {
      closeSync(master);
      throw error;
    }
    this.ended = new Promise((resolve) => {
      // Linux answers EIO once the other side is closed: the usual end.
      this.stream.on('error', () => this.close());
      this.stream.on('end', () => this.close());
      this.stream.once('close', () => {
        this.open = false;
        resolve();
      });
    });
  }

  private readonly master: number;

  onData(listener: (data: Buffer) => void): void {
    this.stream.on('data', listener);
  }

  closeProgramSide(): void {
    closeSync(this.programSide);
  }

  /** Types; what the program does not read now is kept until it does. */
  write(data: Buffer): void {
    if (!this.open || data.length === 0) return;
    this.waiting.push(data);
    this.pump();
  }

  resize(rows: number, columns: number): void {
    if (this.open) resizePty(this.master, rows, columns);
  }

  close(): void {
    this.open = false;
    this.stream.destroy();
  }

  private pump(): void {
    const next = this.waiting[0];
    if (this.writing || !this.open || next === undefined) return;
    this.writing = true;
    write(this.master, next, 0, next.length, null, (error, written) => {
      this.writing = false;
      if (error && error.code !== 'EAGAIN') {
        this.waiting.length = 0;
        return;
      }
      if (error) {
        // Its input queue is full (4 KiB): the program has to read first, and nothing tells when it has.
        setTimeout(() => this.pump(), 10);
        return;
      }
      this.waiting.shift();
      if (written < next.length) this.waiting.unshift(next.subarray(written));
      this.pump();
    });
  }
}
