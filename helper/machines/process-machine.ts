// The process machine: a program runs on the host's kernel in namespaces of its own (bubblewrap), with the branch's files in the
// place of the workspace. A running program cannot be forked: its children start their agent anew. Used by helper/sessions.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, realpathSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { findProgram } from '../agents/find-program.js';
import { pidfdOpen, pidfdSendSignal } from '../native/addon.js';
import { BoughError } from '../protocol/failure.js';
import { limitRun, ownGroupParent, removeEmptyGroups } from './cgroup.js';
import { bubblewrapArguments, markers, type Host } from './bubblewrap.js';
import { isWithin, privateEntries, systemBinds, toolChain, type Mask } from './host-view.js';
import type { ProcessId } from '../state/process-id.js';
import type { Machine, Output, Run, RunRequest, RunRole, Survivor } from './machine.js';
import {
  commandLine,
  generationsOf,
  ignoresSignal,
  innerPid,
  isRunning,
  isStopped,
  membersOf,
  parentOf,
  pids,
  processId,
  signal,
} from './process-table.js';
import { PseudoTerminal } from './pty.js';

const GRACE_MS = 2000;
const POLL_MS = 20;
const MASKS_AGE_MS = 60_000;
const SIGKILL = 9;
const SIGTERM = 15;
const STOP_MS = 100;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

export class ProcessMachine implements Machine {
  readonly kind = 'process';
  private readonly groupParent = ownGroupParent();
  private masks: { readonly at: number; readonly list: readonly Mask[] } | null = null;

  /** @param environment of the helper: PATH and HOME decide what tool chain shows in a branch */
  constructor(private readonly environment: NodeJS.ProcessEnv) {}

  async run(request: RunRequest): Promise<Run> {
    const program = requireBubblewrap(this.environment);
    const terminal = request.terminal;
    const pty = terminal === undefined ? null : new PseudoTerminal(terminal.rows, terminal.columns);
    const streams =
      pty === null ? (['ignore', 'pipe', 'pipe'] as const) : ([0, 1, 2] as const).map(() => pty.programSide);
    let child: ChildProcess;
    try {
      const enclosure = { ...request.enclosure, hidden: request.enclosure.hidden.filter((path) => existsSync(path)) };
      const args = bubblewrapArguments(this.host(), { ...request, enclosure, terminal: pty !== null, infoFd: 3 });
      child = spawn(program, args, {
        cwd: '/',
        // /proc/1/environ can be read inside: bubblewrap itself gets nothing of the person's environment.
        env: {},
        // A session of its own: it goes on when the helper's terminal or the helper ends.
        detached: true,
        stdio: [...streams, 'pipe'],
      });
    } catch (error) {
      pty?.close();
      throw error;
    } finally {
      pty?.closeProgramSide();
    }
    const early: Output[] = [];
    const run = new LiveRun(child, pty, (output) => early.push(output));
    const init = await readInit(child);
    if (init === null) {
      await run.exited;
      const said = Buffer.concat(early.map(({ data }) => data))
        .toString('utf8')
        .trim();
      throw new BoughError('E_SANDBOX', `bubblewrap could not enclose the program. It said: ${said || 'nothing'}`, {
        fix: 'Run: bough doctor',
      });
    }
    run.begin(init, early);
    const group = limitRun(this.groupParent, [init.pid, ...membersOf(init)]);
    if (group) void run.exited.then(() => group.remove());
    return run;
  }

  adopt(init: ProcessId): Run | null {
    return isRunning(init) ? new AdoptedRun(init) : null;
  }

  survivors(state: string): Survivor[] {
    return pids().flatMap((pid): Survivor[] => {
      const args = bubblewrapOf(pid);
      if (!args.some((arg) => isWithin(arg, state)) || innerPid(pid) !== 1) return [];
      const init = processId(pid);
      if (init === null) return [];
      const after = (name: string) => args[args.indexOf(name) + 1] ?? '';
      const outer = parentOf(pid);
      const starter = outer !== null && bubblewrapOf(outer).length > 0 ? parentOf(outer) : null;
      return [{ branch: after(markers.branch), role: after(markers.role) as RunRole, init, starter }];
    });
  }

  clear(): number {
    return removeEmptyGroups(this.groupParent);
  }

  private host(): Host {
    const home = this.environment['HOME'] ?? '/';
    if (this.masks === null || Date.now() - this.masks.at > MASKS_AGE_MS) {
      this.masks = { at: Date.now(), list: privateEntries('/etc') };
    }
    return {
      system: systemBinds(),
      toolChain: toolChain(this.environment, home),
      masks: this.masks.list,
      home,
      root: process.getuid?.() === 0,
      resolver: resolver(),
    };
  }
}

/** The arguments of a bubblewrap; empty for every other process. */
function bubblewrapOf(pid: number): string[] {
  const args = commandLine(pid);
  return (args[0] ?? '').endsWith('bwrap') ? args : [];
}

/** Path of bwrap, or E_NO_BWRAP. */
export function requireBubblewrap(environment: NodeJS.ProcessEnv): string {
  const program = findProgram('bwrap', environment);
  if (program !== undefined) return program;
  throw new BoughError(
    'E_NO_BWRAP',
    'bubblewrap (bwrap) is not installed, so no program can be enclosed in a branch.',
    {
      fix: 'sudo apt-get install bubblewrap',
    },
  );
}

/** The file behind /etc/resolv.conf when it is a link out of /etc, as systemd-resolved makes it. */
function resolver(): string | null {
  try {
    const real = realpathSync('/etc/resolv.conf');
    return isWithin(real, '/etc') ? null : real;
  } catch {
    return null;
  }
}

/** Reads `{"child-pid": N, …}` to its end; null when bubblewrap ended without saying it. */
async function readInit(child: ChildProcess): Promise<ProcessId | null> {
  let text = '';
  try {
    // To the end: a pipe closed earlier would end bubblewrap, which writes more than one time, by SIGPIPE.
    for await (const part of child.stdio[3] as Readable) text += String(part);
  } catch {
    // The child could not even be started: its 'error' event says why.
  }
  const number = /"child-pid"\s*:\s*(\d+)/.exec(text)?.[1];
  if (number === undefined) return null;
  // Of a program that has ended already nothing is left to stop: a start time that no process has says so.
  return processId(Number(number)) ?? { pid: Number(number), startTime: -1 };
}

/** Stopping and freezing need only init; how output and end come differs between a run of ours and an adopted one. */
abstract class NamespaceRun {
  abstract readonly init: ProcessId;
  abstract readonly exited: Promise<{ readonly exitCode: number | null }>;
  protected stopping = false;

  async stop(graceMs = GRACE_MS): Promise<void> {
    this.stopping = true;
    const told = new Set<number>();
    const deadline = Date.now() + graceMs;
    while (isRunning(this.init) && Date.now() < deadline) {
      // Each round, because a program may only just be starting, or start another one.
      const untold = membersOf(this.init).filter((pid) => !told.has(pid));
      for (const pid of untold) {
        told.add(pid);
        // An interactive shell ignores SIGTERM and leaves when its terminal does.
        if (ignoresSignal(pid, SIGTERM)) signal(pid, 'SIGHUP');
        signal(pid, 'SIGTERM');
      }
      // After it, so that a frozen program gets no instant in which it could write.
      for (const pid of untold) signal(pid, 'SIGCONT');
      await pause();
    }
    kill(this.init);
    await this.exited;
  }

  /**
   * Parents before their children, and each stopped before the next: a shell that sees its job stop takes it for Ctrl-Z. Again
   * until nobody is left, because what a process starts before it is stopped shows only then.
   */
  freeze(): void {
    const stopped = new Set<number>();
    for (let found = true; found;) {
      found = false;
      for (const generation of generationsOf(this.init)) {
        const running = generation.filter((pid) => !stopped.has(pid));
        for (const pid of running) {
          stopped.add(pid);
          found = signal(pid, 'SIGSTOP') || found;
        }
        waitUntilStopped(running);
      }
    }
  }

  /** Children before their parents, for the same reason. */
  thaw(): void {
    for (const generation of generationsOf(this.init).reverse()) {
      for (const pid of generation) signal(pid, 'SIGCONT');
    }
  }
}

/** A moment as a rule; one that waits for a disk may take longer, and is then left to it. */
function waitUntilStopped(waiting: readonly number[]): void {
  const deadline = Date.now() + STOP_MS;
  while (!waiting.every(isStopped) && Date.now() < deadline) Atomics.wait(sleeper, 0, 0, 1);
}

class LiveRun extends NamespaceRun implements Run {
  init: ProcessId = { pid: 0, startTime: -1 };
  readonly exited: Promise<{ readonly exitCode: number | null }>;
  private listener: (output: Output) => void;
  private over = false;

  constructor(
    child: ChildProcess,
    private readonly pty: PseudoTerminal | null,
    listener: (output: Output) => void,
  ) {
    super();
    this.listener = listener;
    pty?.onData((data) => this.listener({ stream: 'stdout', data }));
    child.stdout?.on('data', (data: Buffer) => this.listener({ stream: 'stdout', data }));
    child.stderr?.on('data', (data: Buffer) => this.listener({ stream: 'stderr', data }));
    const ended = new Promise<{ exitCode: number | null }>((resolve) => {
      child.once('error', (error) => {
        this.listener({ stream: 'stderr', data: Buffer.from(error.message) });
        resolve({ exitCode: null });
      });
      // bubblewrap ends with the program; what that left running in the background keeps init, and goes with it.
      child.once('exit', () => {
        this.over = true;
        kill(this.init);
      });
      // 'close', not 'exit': all output has been read then.
      child.once('close', (code) => resolve({ exitCode: this.stopping ? null : code }));
    });
    this.exited = ended.then(async (result) => {
      await this.outlived();
      await pty?.ended;
      return result;
    });
  }

  begin(init: ProcessId, early: readonly Output[]): void {
    this.init = init;
    if (this.over) kill(init);
    const kept = [...early];
    this.listener = (output) => kept.push(output);
    this.kept = kept;
  }

  private kept: Output[] = [];

  onOutput(listener: (output: Output) => void): void {
    for (const output of this.kept) listener(output);
    this.kept = [];
    this.listener = listener;
  }

  write(data: Buffer): void {
    this.pty?.write(data);
  }

  resize(rows: number, columns: number): void {
    this.pty?.resize(rows, columns);
  }

  /** bubblewrap outside may be killed alone; the run has ended only when its init has. */
  private async outlived(): Promise<void> {
    while (this.init.pid !== 0 && isRunning(this.init)) await pause();
  }
}

class AdoptedRun extends NamespaceRun implements Run {
  readonly exited: Promise<{ readonly exitCode: number | null }>;

  constructor(readonly init: ProcessId) {
    super();
    this.exited = this.gone();
  }

  // What it printed went to the terminal of the earlier helper, which has hung up.
  onOutput(): void {}
  write(): void {}
  resize(): void {}

  private async gone(): Promise<{ readonly exitCode: null }> {
    while (isRunning(this.init)) await pause(250);
    return { exitCode: null };
  }
}

/** SIGKILL to init ends all of its namespace. Through a pidfd: the number cannot be given to another process in between. */
function kill(init: ProcessId): void {
  if (init.pid === 0) return;
  let fd: number;
  try {
    fd = pidfdOpen(init.pid);
  } catch {
    return;
  }
  try {
    if (isRunning(init)) pidfdSendSignal(fd, SIGKILL);
  } catch {
    // ESRCH: it ended by itself.
  } finally {
    closeSync(fd);
  }
}

function pause(ms = POLL_MS): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
