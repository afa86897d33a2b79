// Builds and runs the measuring program. Used by the rows of bench/fs.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { root, run } from '../../test/harness.js';

export class Probe {
  private constructor(private readonly program: string) {}

  static async build(): Promise<Probe> {
    const folder = join(root, 'build', 'bench');
    mkdirSync(folder, { recursive: true });
    const program = join(folder, 'probe');
    const source = join(root, 'bench', 'fs', 'probe.cc');
    const built = await run('c++', ['-std=c++20', '-O2', '-o', program, source]);
    if (built.status !== 0) throw new Error(`The measuring program does not build:\n${built.err}`);
    return new Probe(program);
  }

  /** Runs a measurement and gives its samples. */
  async samples(...args: (string | number)[]): Promise<number[]> {
    const ran = await run(this.program, args.map(String));
    if (ran.status !== 0) throw new Error(`probe ${args.join(' ')}: ${ran.err}`);
    return ran.out.trim().split('\n').map(Number);
  }

  /** Opens a control socket whose requests are timed outside this runtime. */
  control(socket: string): Control {
    return new Control(spawn(this.program, ['rpc', socket], { stdio: ['pipe', 'pipe', 'inherit'] }));
  }
}

export interface Timed {
  readonly us: number;
  readonly result: Record<string, unknown>;
}

/** Requests to boughfs, timed from the first byte written to the last byte read. */
export class Control {
  private readonly lines: AsyncIterableIterator<string>;
  private next = 1;

  constructor(private readonly child: ChildProcessByStdio<Writable, Readable, null>) {
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  async request(method: string, params: unknown): Promise<Timed> {
    this.child.stdin.write(`${JSON.stringify({ id: this.next++, method, params })}\n`);
    const line = await this.lines.next();
    if (line.done === true) throw new Error(`${method}: the connection ended`);
    const space = line.value.indexOf(' ');
    const answer = JSON.parse(line.value.slice(space + 1)) as { result?: Record<string, unknown>; error?: unknown };
    if (answer.result === undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return { us: Number(line.value.slice(0, space)) / 1000, result: answer.result };
  }

  close(): void {
    this.child.stdin.end();
  }
}
