// One story's own world: a temp folder with HOME, XDG folders, a fresh sample and nothing of the person who runs the tests.
// Removed at the end with every mount and process in it. Used by harness.ts.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeSample } from '../fixtures/make-sample.js';
import { until } from './wait.js';

export interface World {
  readonly root: string;
  /** The folder that the person has open. */
  readonly sample: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Names of the caller's environment that a person's shell has too; everything else stays out. */
const KEPT = ['PATH', 'LANG', 'LC_ALL', 'TZ'];
/** Marks every process of this world, also those that left our process group. */
const MARK = 'BOUGH_E2E_WORLD';

export function makeWorld(changes: NodeJS.ProcessEnv = {}): World {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), 'be-')));
  const folder = (name: string, mode = 0o755) => {
    const made = path.join(root, name);
    mkdirSync(made, { recursive: true, mode });
    return made;
  };
  const sample = path.join(root, 'orders');
  makeSample(sample);
  const env: NodeJS.ProcessEnv = {};
  for (const name of KEPT) if (process.env[name] !== undefined) env[name] = process.env[name];
  Object.assign(env, {
    HOME: folder('home'),
    XDG_RUNTIME_DIR: folder('run', 0o700),
    XDG_STATE_HOME: folder('state'),
    XDG_CACHE_HOME: folder('cache'),
    XDG_CONFIG_HOME: folder('config'),
    TMPDIR: folder('tmp'),
    SHELL: '/bin/bash',
    TERM: 'xterm-256color',
    [MARK]: root,
    ...changes,
  });
  return { root, sample, env };
}

/** Processes of this world that are alive: pid and command line. */
export function processesOf(world: World): readonly { readonly pid: number; readonly command: string }[] {
  const wanted = `${MARK}=${world.root}`;
  return readdirSync('/proc').flatMap((entry) => {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      if (!environment.includes(wanted)) return [];
      const state = /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
      if (state === 'Z' || state === 'X') return [];
      return [{ pid, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }];
    } catch {
      // It ended while we looked.
      return [];
    }
  });
}

/** Mount points below this world. */
export function mountsOf(world: World): readonly string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((at) => at.startsWith(`${world.root}/`));
}

export function programOf(pid: number): string {
  try {
    return path.basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    return '';
  }
}

function signalAll(world: World, signal: NodeJS.Signals): void {
  for (const { pid } of processesOf(world)) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended meanwhile.
    }
  }
}

export async function removeWorld(world: World): Promise<void> {
  // First a chance to end well: boughfs unmounts on SIGTERM.
  signalAll(world, 'SIGTERM');
  await until('processes to end', () => processesOf(world).length === 0, 10_000).catch(() =>
    signalAll(world, 'SIGKILL'),
  );
  await until('killed processes to be gone', () => processesOf(world).length === 0, 30_000);
  for (const at of [...mountsOf(world)].reverse()) {
    try {
      execFileSync('umount', ['--lazy', at], { stdio: 'ignore' });
    } catch {
      execFileSync('fusermount3', ['-u', '-z', at], { stdio: 'ignore' });
    }
  }
  rmSync(world.root, { recursive: true, force: true, maxRetries: 5 });
}
