// One branch's programs: its agent on a terminal that outlives windows, and the commands and checks beside it. Used by the
// branches' services and by the terminal requests of the API.
import { StringDecoder } from 'node:string_decoder';
import { BoughError } from '../protocol/failure.js';
import type { Machine, Run, RunRequest } from '../machines/machine.js';
import type { Transcript } from './transcript.js';

export interface TerminalWatcher {
  data(text: string): void;
  exit(exitCode: number | null): void;
}

export interface Ending {
  readonly exitCode: number | null;
  /** Why, when it did not end by itself. */
  readonly note: string | null;
}

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandLimits {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Of each stream the last so many bytes are kept. */
  readonly keepBytes: number;
  readonly onOutput?: (data: Buffer) => void;
}

/** What timeout(1) answers. */
export const TIMED_OUT = 124;
const NOT_FOUND = 127;

export class Session {
  private agent: Run | null = null;
  private readonly commands = new Set<Run>();
  private readonly watchers = new Set<TerminalWatcher>();
  private stopReason: string | null = null;
  /** Settles when the last agent's end is noted. */
  private ending: Promise<void> = Promise.resolve();
  private readonly standing: { closed: boolean; frozen: boolean } = { closed: false, frozen: false };

  /** @param onEnd is told when the agent has ended and nothing of it is left */
  constructor(
    private readonly machine: Machine,
    private readonly transcript: Transcript,
    private readonly onEnd: (ending: Ending) => void,
  ) {}

  get isRunning(): boolean {
    return this.agent !== null;
  }

  get init(): Run['init'] | null {
    return this.agent?.init ?? null;
  }

  /** Starts the agent. One at a time. */
  async start(request: RunRequest, banner: string): Promise<Run['init']> {
    if (this.agent !== null)
      throw new BoughError('E_STATE', 'An agent runs in this branch already.', { fix: 'Stop it first.' });
    this.throwIfClosed();
    if (banner !== '') this.print(Buffer.from(banner));
    const run = await this.machine.run(request);
    if (this.standing.closed) {
      await run.stop(0);
      this.throwIfClosed();
    }
    return this.take(run);
  }

  /** Takes up the agent of an earlier helper. */
  adopt(run: Run): void {
    this.print(Buffer.from('\r\n[The helper was started anew. What the agent prints from here on is not seen.]\r\n'));
    this.take(run);
  }

  /** Adds to the terminal what no program printed. */
  print(data: Buffer): void {
    this.transcript.append(data);
    const text = data.toString('utf8');
    for (const watcher of this.watchers) watcher.data(text);
  }

  /** From now on the watcher gets what comes; returns what came before, and how to stop. */
  watch(watcher: TerminalWatcher): { readonly replay: string; readonly stop: () => void } {
    this.watchers.add(watcher);
    return { replay: this.transcript.replay(), stop: () => this.watchers.delete(watcher) };
  }

  input(data: string): void {
    this.agent?.write(Buffer.from(data, 'utf8'));
  }

  resize(rows: number, columns: number): void {
    this.agent?.resize(rows, columns);
  }

  /** Runs a command beside the agent and waits for it. */
  async command(request: RunRequest, limits: CommandLimits): Promise<CommandResult> {
    this.throwIfClosed();
    limits.signal?.throwIfAborted();
    const run = await this.machine.run(request);
    this.commands.add(run);
    const stdout = new Tail(limits.keepBytes);
    const stderr = new Tail(limits.keepBytes);
    run.onOutput(({ stream, data }) => {
      (stream === 'stdout' ? stdout : stderr).add(data);
      limits.onOutput?.(data);
    });
    const limit = { reached: false };
    const timer =
      limits.timeoutMs === undefined
        ? null
        : setTimeout(() => {
            limit.reached = true;
            void run.stop();
          }, limits.timeoutMs);
    const onAbort = () => void run.stop();
    limits.signal?.addEventListener('abort', onAbort, { once: true });
    try {
      // An abort of the branch may have come while bubblewrap started.
      if (this.standing.closed || limits.signal?.aborted === true) void run.stop(0);
      else if (this.standing.frozen) run.freeze();
      const { exitCode } = await run.exited;
      if (limit.reached) return { exitCode: TIMED_OUT, stdout: stdout.text(), stderr: stderr.text() };
      if (limits.signal?.aborted === true) throw new BoughError('E_CANCELLED', 'The command was cancelled.');
      if (exitCode === null) {
        throw new BoughError('E_STOPPED', 'The command was stopped, because its branch was stopped or discarded.');
      }
      const missing = exitCode === 1 && stdout.text() === '' && /^bwrap: execvp .*: No such file/.test(stderr.text());
      return { exitCode: missing ? NOT_FOUND : exitCode, stdout: stdout.text(), stderr: stderr.text() };
    } finally {
      if (timer) clearTimeout(timer);
      limits.signal?.removeEventListener('abort', onAbort);
      this.commands.delete(run);
    }
  }

  /** Stops the agent and every command. Settles when nothing of them is left. */
  async stop(reason: string | null): Promise<void> {
    this.stopReason = reason;
    const runs = [...this.commands, ...(this.agent ? [this.agent] : [])];
    await Promise.all(runs.map((run) => run.stop()));
    await this.ending;
    this.stopReason = null;
  }

  /** For good: the branch is going. */
  async close(): Promise<void> {
    this.standing.closed = true;
    await this.stop(null);
    await this.transcript.drop();
  }

  /** Runs the action while no program of the branch can write. */
  async whileFrozen<T>(action: () => Promise<T>): Promise<T> {
    this.standing.frozen = true;
    const runs = [...this.commands, ...(this.agent ? [this.agent] : [])];
    for (const run of runs) run.freeze();
    try {
      return await action();
    } finally {
      this.standing.frozen = false;
      for (const run of [...this.commands, ...(this.agent ? [this.agent] : [])]) run.thaw();
    }
  }

  flush(): Promise<void> {
    return this.transcript.flush();
  }

  private take(run: Run): Run['init'] {
    this.agent = run;
    // A character may come in two parts.
    const decoder = new StringDecoder('utf8');
    run.onOutput(({ data }) => {
      this.transcript.append(data);
      const text = decoder.write(data);
      if (text !== '') for (const watcher of this.watchers) watcher.data(text);
    });
    this.ending = run.exited.then(async ({ exitCode }) => {
      const note = this.stopReason;
      await this.transcript.flush();
      this.agent = null;
      this.onEnd({ exitCode, note });
      for (const watcher of this.watchers) watcher.exit(exitCode);
    });
    return run.init;
  }

  private throwIfClosed(): void {
    if (this.standing.closed) throw new BoughError('E_NO_BRANCH', 'The branch is being discarded.');
  }
}

/** The last bytes of a stream. */
class Tail {
  private parts: Buffer[] = [];
  private size = 0;
  private cut = false;

  constructor(private readonly limit: number) {}

  add(data: Buffer): void {
    this.parts.push(data);
    this.size += data.length;
    while (this.size - (this.parts[0]?.length ?? 0) >= this.limit) {
      this.size -= this.parts.shift()?.length ?? 0;
      this.cut = true;
    }
  }

  text(): string {
    const all = Buffer.concat(this.parts);
    return (this.cut ? '[cut off before]\n' : '') + all.toString('utf8');
  }
}
