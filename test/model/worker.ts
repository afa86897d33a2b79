// The process that touches files for test/model and test/crash (worker.py): a mount that hangs blocks it and not the suite.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DEADLINE_MS, root } from '../harness.js';

/** Path → everything that belongs to it, as text. */
export type Tree = Readonly<Record<string, string>>;

export interface FileOp {
  readonly kind: string;
  readonly path?: string;
  readonly [field: string]: string | number | undefined;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export class Worker {
  private readonly process: ChildProcess;
  private readonly waiting: Waiting[] = [];
  private said = '';

  constructor() {
    this.process = spawn('python3', [join(root, 'test', 'model', 'worker.py')], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.process.once('exit', () => {
      for (const one of this.waiting.splice(0)) this.settle(one, new Error(`The worker ended: ${this.said}`));
    });
    const { stdout } = this.process;
    if (stdout === null) throw new Error('The worker has no output');
    createInterface({ input: stdout }).on('line', (line) => {
      const one = this.waiting.shift();
      if (one === undefined) return;
      const reply = JSON.parse(line) as { result?: unknown; error?: string };
      if (reply.error !== undefined) this.settle(one, new Error(reply.error));
      else this.settle(one, undefined, reply.result);
    });
  }

  /** The same operation below each root. */
  async op(roots: readonly string[], op: FileOp): Promise<readonly unknown[]> {
    return (await this.ask({ do: 'op', roots, op })) as readonly unknown[];
  }

  async dump(folder: string, dirTimes = true): Promise<Tree> {
    return (await this.ask({ do: 'dump', root: folder, dirTimes })) as Tree;
  }

  async copy(from: string, to: string): Promise<void> {
    await this.ask({ do: 'copy', from, to });
  }

  /** Closes what operations hold open below a root. */
  async forget(folder: string): Promise<void> {
    await this.ask({ do: 'forget', root: folder });
  }

  stop(): void {
    this.process.kill('SIGKILL');
  }

  private settle(one: Waiting, error?: Error, result?: unknown): void {
    clearTimeout(one.timer);
    if (error === undefined) one.resolve(result);
    else one.reject(error);
  }

  private ask(request: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.stop();
        reject(new Error(`No answer in ${String(DEADLINE_MS)} ms to ${JSON.stringify(request).slice(0, 500)}`));
      }, DEADLINE_MS);
      this.waiting.push({ resolve, reject, timer });
      this.process.stdin?.write(`${JSON.stringify(request)}\n`);
    });
  }
}

/** Both ends of a long text. */
function short(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 120)} … ${text.slice(-160)}`;
}

/** What differs, as lines; empty if nothing does. */
export function differences(is: Tree, wanted: Tree): readonly string[] {
  const lines: string[] = [];
  for (const path of [...new Set([...Object.keys(is), ...Object.keys(wanted)])].sort()) {
    const [a, b] = [is[path], wanted[path]];
    if (a === b) continue;
    const shown = JSON.stringify(path);
    if (a === undefined) lines.push(`${shown} is missing, wanted ${short(String(b))}`);
    else if (b === undefined) lines.push(`${shown} is too much: ${short(a)}`);
    else lines.push(`${shown}\n    is     ${short(a)}\n    wanted ${short(b)}`);
  }
  return lines;
}
