// A machine as its host uses it: run programs, take part in a fork, forward ports. Connects when something is asked, and again when
// the connection is lost, so that programs and their streams go on. Used by the machines that boughvm runs.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { BoughError, errorCode } from '../../protocol/failure.js';
import { GuestChannel } from './channel.js';
import type { Dial } from './dial.js';
import { GuestProcess, type Ask, type OutputListener } from './guest-process.js';
import type {
  Exit,
  GuestEvent,
  GuestHello,
  GuestIdentity,
  GuestMethod,
  GuestParams,
  GuestResult,
  ListedProcess,
  StartParams,
} from './messages.js';
import { forwardPort } from './forward.js';

export interface GuestOptions {
  readonly dial: Dial;
  /** How long it tries to connect before it gives up; a machine may be booting. */
  readonly patienceMs?: number;
  /** Told of each lost connection and of each new one. */
  readonly onConnection?: (connected: boolean) => void;
}

export interface ExecOptions extends StartParams {
  readonly onOutput: OutputListener;
  /** Whether the program gets a pipe as standard input; otherwise it is empty. */
  readonly input?: boolean;
}

export interface PtyOptions extends StartParams {
  readonly onOutput: OutputListener;
  readonly rows: number;
  readonly columns: number;
}

export interface RunResult {
  readonly exit: Exit;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

const PATIENCE_MS = 60_000;
const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
const WINDOW = 256 * 1024;
/** A lost answer to one of these changes nothing when it is asked again. */
const REPEATABLE = new Set<GuestMethod>([
  'hello',
  'list',
  'wait',
  'port.list',
  'freeze',
  'thaw',
  'fork.prepare',
  'fork.parent',
  'resize',
  'forget',
]);

export class Guest {
  private channel: GuestChannel | null = null;
  private connecting: Promise<GuestChannel> | null = null;
  private readonly processes = new Map<number, GuestProcess>();
  private closing = false;
  private readonly ask: Ask = (method, params) => this.request(method, params);

  constructor(private readonly options: GuestOptions) {}

  /** Asks bough-init; connects first if need be. A request that can be repeated is, once, when the connection is lost. */
  async request<M extends GuestMethod>(method: M, params: GuestParams[M]): Promise<GuestResult<M>> {
    const channel = await this.connected();
    try {
      return await channel.request(method, params);
    } catch (error) {
      if (errorCode(error) !== 'E_GUEST_GONE' || !REPEATABLE.has(method)) throw error;
      return await (await this.connected()).request(method, params);
    }
  }

  hello(): Promise<GuestHello> {
    return this.request('hello', {});
  }

  async list(): Promise<readonly ListedProcess[]> {
    return (await this.request('list', {})).processes;
  }

  /** Starts a program. Rejects with E_EXEC, E_CWD, E_USER when it cannot be started. */
  exec(options: ExecOptions): Promise<GuestProcess> {
    const { onOutput, input, ...start } = options;
    return this.start('exec', { ...start, stdin: input === true ? 'pipe' : 'none' }, onOutput);
  }

  /** Starts a program on a terminal of its own. */
  pty(options: PtyOptions): Promise<GuestProcess> {
    const { onOutput, ...start } = options;
    return this.start('pty', start, onOutput);
  }

  /** Runs a program to its end. What it leaves behind in the guest may still write; that is not waited for. */
  async run(options: Omit<ExecOptions, 'onOutput' | 'input'> & { readonly stdin?: Buffer }): Promise<RunResult> {
    const { stdin, ...start } = options;
    const parts: { readonly stdout: Buffer[]; readonly stderr: Buffer[] } = { stdout: [], stderr: [] };
    const process = await this.exec({
      ...start,
      input: stdin !== undefined,
      onOutput: ({ stream, data }) => void (stream === 'stderr' ? parts.stderr : parts.stdout).push(data),
    });
    if (stdin !== undefined) {
      // A program that does not read its input to the end is no failure.
      void process
        .write(stdin)
        .then(() => process.end())
        .catch(() => undefined);
    }
    const exit = await process.exited;
    this.processes.delete(process.number);
    await process.forget();
    return { exit, stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr) };
  }

  /**
   * Takes up a process that this host, or the one before it, started in this machine or in the one it was forked from.
   * @param position where to go on; from the oldest output that is kept if absent
   */
  async attach(
    listed: Pick<ListedProcess, 'process' | 'pid' | 'received' | 'from'>,
    onOutput: OutputListener,
    position: { readonly from?: number; readonly received?: number } = {},
  ): Promise<GuestProcess> {
    const from = position.from ?? listed.from;
    const process = new GuestProcess(
      { ...listed, from, received: position.received ?? listed.received },
      onOutput,
      this.ask,
    );
    this.processes.set(process.number, process);
    await this.attachOn(await this.connected(), process);
    if (process.failed !== null) throw process.failed;
    return process;
  }

  /** Freezes all programs for a fork of the machine; see docs/guest-protocol.md for the order. */
  async prepareFork(): Promise<{ readonly tookUs: number }> {
    return await this.request('fork.prepare', {});
  }

  /** On the source, after the fork or when it is called off: programs go on. */
  async forkedParent(): Promise<void> {
    await this.request('fork.parent', {});
  }

  /** On a child, first of all: new random numbers, clock and identity, then its programs go on. */
  async forkedChild(identity: GuestIdentity): Promise<{ readonly bootId: string; readonly forks: number }> {
    return await this.request('fork.child', {
      entropy: randomBytes(32).toString('base64'),
      identity,
      realtimeUs: Date.now() * 1000,
    });
  }

  /** A stream of bytes to a TCP port on the guest's loopback, paused until its reader resumes it. Rejects with E_NO_PORT when nobody listens there. */
  async forward(port: number): Promise<Socket> {
    return await forwardPort(await this.dialPatiently(), port);
  }

  /** Lets go of the machine; its programs go on. */
  close(): void {
    this.closing = true;
    this.failAll(new BoughError('E_SHUTDOWN', 'The connection to the machine was closed.'));
    this.channel?.close();
  }

  private async start(
    method: 'exec' | 'pty',
    given: GuestParams['exec'] | GuestParams['pty'],
    onOutput: OutputListener,
  ): Promise<GuestProcess> {
    // With a key the request can be repeated when its answer was lost.
    const params = { window: WINDOW, key: randomUUID(), ...given } as GuestParams['exec'] & GuestParams['pty'];
    for (let attempt = 0; ; attempt++) {
      const channel = await this.connected();
      let process: GuestProcess | undefined;
      try {
        await channel.request(method, params, (started) => {
          process = new GuestProcess(started, onOutput, this.ask);
          this.processes.set(process.number, process);
          process.attached(channel, started);
        });
      } catch (error) {
        if (errorCode(error) !== 'E_GUEST_GONE' || attempt > 0) throw error;
      }
      if (process !== undefined) return process;
    }
  }

  private connected(): Promise<GuestChannel> {
    if (this.closing) return Promise.reject(new BoughError('E_SHUTDOWN', 'The connection to the machine was closed.'));
    if (this.channel?.isAlive === true) return Promise.resolve(this.channel);
    this.connecting ??= this.connect().finally(() => (this.connecting = null));
    return this.connecting;
  }

  /** Until there is a connection on which everything is attached again. */
  private async connect(): Promise<GuestChannel> {
    try {
      for (;;) {
        const channel = new GuestChannel(await this.dialPatiently(), (event) => this.take(event));
        this.channel = channel;
        void channel.closed.then(() => this.onClosed(channel));
        this.options.onConnection?.(true);
        for (const process of [...this.processes.values()]) await this.attachOn(channel, process);
        if (channel.isAlive) return channel;
      }
    } catch (error) {
      this.failAll(error);
      throw error;
    }
  }

  private async dialPatiently(): Promise<Socket> {
    const deadline = Date.now() + (this.options.patienceMs ?? PATIENCE_MS);
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(2 * waitMs, LAST_RETRY_MS)) {
      try {
        return await this.options.dial();
      } catch (error) {
        if (this.closing || Date.now() + waitMs > deadline) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  private async attachOn(channel: GuestChannel, process: GuestProcess): Promise<void> {
    try {
      const { from } = process.position;
      await channel.request('attach', { process: process.number, from, window: WINDOW }, (state) =>
        process.attached(channel, state),
      );
    } catch (error) {
      if (!channel.isAlive) return; // the next connection tries again
      this.processes.delete(process.number);
      process.fail(asError(error));
    }
  }

  private onClosed(channel: GuestChannel): void {
    if (this.channel !== channel) return;
    this.channel = null;
    this.options.onConnection?.(false);
    for (const process of this.processes.values()) process.detached();
    // While it is being connected, that notices by itself.
    if (this.closing || this.processes.size === 0 || this.connecting !== null) return;
    this.connected().catch(() => undefined); // the processes have been told
  }

  private failAll(error: unknown): void {
    for (const process of this.processes.values()) process.fail(asError(error));
    this.processes.clear();
  }

  private take(event: GuestEvent): void {
    const process = this.processes.get(event.process);
    if (process?.take(event) === true) this.processes.delete(event.process);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
