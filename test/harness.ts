// What the suites around boughfs share: a scratch folder that cleans up after itself, a real boughfs on it, and a count of
// checks. Used by test/conformance, test/crash, test/model and bench/fs.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Boughfs } from '../helper/files/boughfs.js';
import { findBoughfs } from '../helper/files/boughfs-process.js';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Generous: the machine may be slow and busy. */
export const DEADLINE_MS = 60_000;

/** A folder of this run alone. Its mounts are detached and its files removed by `remove`. */
export class Scratch {
  readonly path: string;

  constructor(what: string, parent = tmpdir()) {
    this.path = realpathSync(mkdtempSync(join(parent, `bough-${what}-`)));
  }

  /** A folder in it, made if it is not there. */
  folder(...names: string[]): string {
    const path = join(this.path, ...names);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Detaches what is mounted below (by name only: a dead mount is never asked) and removes everything. */
  async remove(): Promise<void> {
    await this.detach(this.path);
    rmSync(this.path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  /** Detaches what is mounted below a folder of it. */
  async detach(folder: string): Promise<void> {
    for (const point of mountsBelow(folder).reverse()) await run('umount', ['-l', point]);
  }
}

/** Mount points below a folder, from /proc/self/mountinfo. */
export function mountsBelow(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .map((point) => point.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8))))
    .filter((point) => point.startsWith(`${folder}/`));
}

export interface ServerOptions {
  readonly base: string;
  readonly store: string;
  readonly socket: string;
  readonly hide?: readonly string[];
  readonly never?: readonly string[];
  readonly failPoints?: boolean;
  readonly environment?: NodeJS.ProcessEnv;
}

/** One boughfs process and a connection to it. */
export class Server {
  /** Set once the process has ended: its exit code, or the signal's name. */
  ended: number | string | null = null;
  readonly exit: Promise<number | string>;
  private readonly said: string[] = [];

  private constructor(
    readonly options: ServerOptions,
    private readonly process: ChildProcess,
  ) {
    this.exit = new Promise((resolve) => {
      process.once('exit', (code, signal) => {
        this.ended = signal ?? code ?? -1;
        resolve(this.ended);
      });
    });
  }

  client!: Boughfs;

  /** Starts boughfs and waits until it is ready. Throws with what it said if it ends before. */
  static async start(options: ServerOptions): Promise<Server> {
    mkdirSync(options.store, { recursive: true, mode: 0o700 });
    const args = ['--store', options.store, '--base', options.base, '--socket', options.socket];
    for (const glob of options.hide ?? []) args.push('--hide', glob);
    for (const folder of options.never ?? []) args.push('--never', folder);
    if (options.failPoints === true) args.push('--test-fail-points');
    const child = spawn(findBoughfs(process.env), args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.environment },
    });
    const server = new Server(options, child);
    child.stderr.setEncoding('utf8').on('data', (text: string) => server.said.push(text));
    const ready = new Promise<void>((resolve) => {
      let out = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        out += text;
        if (/^ready$/m.test(out)) resolve();
      });
    });
    const failed = await Promise.race([
      ready.then(() => null),
      server.exit.then((how) => `ended with ${String(how)}`),
      deadline(DEADLINE_MS).then(() => 'was not ready in time'),
    ]);
    if (failed !== null) {
      child.kill('SIGKILL');
      throw new Error(`boughfs ${failed}: ${server.log().trim()}`);
    }
    server.client = await Boughfs.connect(options.socket);
    return server;
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** What it wrote to stderr. */
  log(): string {
    return this.said.join('');
  }

  /** Ends it as a person would; how it ended. */
  async stop(): Promise<number | string> {
    return await this.signal('SIGTERM');
  }

  /** Ends it as a crash would. */
  async kill(): Promise<number | string> {
    return await this.signal('SIGKILL');
  }

  private async signal(name: 'SIGTERM' | 'SIGKILL'): Promise<number | string> {
    if (this.ended === null) this.process.kill(name);
    const how = await Promise.race([this.exit, deadline(DEADLINE_MS).then(() => null)]);
    if (how === null) {
      this.process.kill('SIGKILL');
      throw new Error(`boughfs did not end after ${name}: ${this.log().trim()}`);
    }
    this.client.close();
    return how;
  }

  /** One branch, made and mounted (or only its folder `path`) at a folder that is made if need be. */
  async mountedBranch(parent: string, at: string, path?: string): Promise<string> {
    const { branches } = await this.client.request('branch.create', { parent, count: 1, group: 'independent' });
    const branch = branches[0];
    if (branch === undefined) throw new Error('branch.create answered no branch');
    mkdirSync(at, { recursive: true });
    await this.client.request('branch.mount', { branch: branch.id, at, ...(path === undefined ? {} : { path }) });
    return branch.id;
  }
}

export interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end. Never rejects: a program that cannot be run has status null. */
export function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string; timeoutMs?: number; uid?: number } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(program, [...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
      env: options.env ?? process.env,
    });
    let out = '';
    let err = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 10 * DEADLINE_MS);
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    child.once('error', (error) => {
      clearTimeout(timer);
      resolve({ status: null, out, err: err + error.message });
    });
    child.once('close', (status) => {
      clearTimeout(timer);
      resolve({ status, out, err });
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The other side of a race: does not keep the process alive when the race is over. */
function deadline(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/** Waits until the condition holds; throws after the deadline. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  deadlineMs = DEADLINE_MS,
): Promise<void> {
  const end = Date.now() + deadlineMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`Waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Counts checks and prints the failed ones; the suite's last line comes from `summary`. */
export class Checks {
  passed = 0;
  failed = 0;
  skipped = 0;

  pass(): void {
    this.passed++;
  }

  fail(name: string, why: unknown): void {
    this.failed++;
    console.log(
      `FAILED ${name}\n  ${(why instanceof Error ? (why.stack ?? why.message) : String(why)).replaceAll('\n', '\n  ')}`,
    );
  }

  skip(name: string, why: string): void {
    this.skipped++;
    console.log(`skipped ${name}: ${why}`);
  }

  /** Runs one check; what it throws is its failure. */
  async check(name: string, body: () => void | Promise<void>): Promise<boolean> {
    try {
      await body();
      this.pass();
      return true;
    } catch (error) {
      this.fail(name, error);
      return false;
    }
  }

  summary(): string {
    return `${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`;
  }
}

/** Writes a tree of text files. */
export function writeTree(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

export function isThere(path: string): boolean {
  return existsSync(path);
}
