// Reads /proc (proc(5)): which processes are alive, what is in a PID namespace, which bubblewraps are ours. Used by the process
// machine and by the reconciliation at the start.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { ProcessId } from '../state/process-id.js';

/** All numeric entries of /proc. */
export function pids(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

interface Stat {
  /** One letter: R, S, D, T (stopped), Z… */
  readonly state: string;
  readonly parent: number;
  readonly startTime: number;
}

function stat(pid: number): Stat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The second field is the name in brackets and may hold anything, also brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? 'X', parent: Number(fields[1]), startTime: Number(fields[19]) };
}

export function processId(pid: number): ProcessId | null {
  const found = stat(pid);
  return found === null || found.state === 'Z' || found.state === 'X' ? null : { pid, startTime: found.startTime };
}

/** Null when it has ended. */
export function parentOf(pid: number): number | null {
  return stat(pid)?.parent ?? null;
}

/** Whether that very process still runs; a zombie does not. */
export function isRunning(id: ProcessId): boolean {
  return processId(id.pid)?.startTime === id.startTime;
}

function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

/** Everything in the PID namespace of that init, except init itself. */
export function membersOf(init: ProcessId): number[] {
  const namespace = namespaceOf(init.pid);
  // A process that has just left its namespace's file behind, or a number that was given away.
  if (namespace === null || !isRunning(init) || namespace === namespaceOf(process.pid)) return [];
  return pids().filter((pid) => pid !== init.pid && namespaceOf(pid) === namespace && processId(pid) !== null);
}

/** The same in generations: each after the one that its parents are in. */
export function generationsOf(init: ProcessId): number[][] {
  const parents = new Map(membersOf(init).map((pid) => [pid, stat(pid)?.parent ?? init.pid]));
  const generations: number[][] = [];
  for (const pid of parents.keys()) {
    let depth = 0;
    for (let above = parents.get(pid); above !== undefined && parents.has(above); above = parents.get(above)) depth++;
    (generations[depth] ??= []).push(pid);
  }
  return generations;
}

/** Whether SIGSTOP has taken effect; true also for one that has ended. */
export function isStopped(pid: number): boolean {
  const found = stat(pid);
  return found === null || ['T', 't', 'Z', 'X'].includes(found.state);
}

/** The arguments of a process; empty when it has ended or is the kernel's. */
export function commandLine(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return text === '' ? [] : text.replace(/\0$/, '').split('\0');
  } catch {
    return [];
  }
}

/** Its number in its own PID namespace; 1 for an init. */
export function innerPid(pid: number): number {
  try {
    const line = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return Number(line?.trim().split(/\s+/).at(-1) ?? pid);
  } catch {
    return pid;
  }
}

/** Whether the process ignores that signal (by number), as interactive shells do SIGTERM. */
export function ignoresSignal(pid: number, number: number): boolean {
  try {
    const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '0';
    return ((BigInt(`0x${mask}`) >> BigInt(number - 1)) & 1n) === 1n;
  } catch {
    return false;
  }
}

/** Sends a signal and says whether there was somebody to get it. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
