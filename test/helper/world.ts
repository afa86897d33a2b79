// One helper of its own for a case: XDG folders, HOME and workspaces below one scratch folder, and a look at what is left of it.
// Used by the cases in this folder.
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type HelperClient } from '../../helper/api/client.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { places, storePlaces, type StorePlaces } from '../../helper/state/places.js';
import { mountsBelow, pause, root, Scratch, until, writeTree } from '../harness.js';

export const helperProgram = join(root, 'dist', 'helper.js');

export interface Leftovers {
  readonly mounts: readonly string[];
  readonly processes: readonly string[];
  /** Below branches/ and mounts/ of all stores. */
  readonly folders: readonly string[];
}

export class World {
  readonly scratch: Scratch;
  readonly env: NodeJS.ProcessEnv;
  private readonly clients: HelperClient[] = [];

  constructor(what: string, env: NodeJS.ProcessEnv = {}) {
    // Short, because it is part of socket paths.
    this.scratch = new Scratch(`h-${what}`);
    this.env = {
      PATH: process.env['PATH'],
      LANG: 'C.UTF-8',
      HOME: this.scratch.folder('home'),
      XDG_RUNTIME_DIR: this.scratch.folder('run'),
      XDG_STATE_HOME: this.scratch.folder('state'),
      XDG_CACHE_HOME: this.scratch.folder('cache'),
      ...passed(['BOUGH_SUITE_RUN', 'BOUGH_BOUGHFS']),
      ...env,
    };
  }

  /** A workspace with these files. */
  workspace(name: string, files: Readonly<Record<string, string>>): string {
    const folder = realpathSync(this.scratch.folder(name));
    writeTree(folder, files);
    return folder;
  }

  /** A new connection; the helper is started when none runs. */
  async client(): Promise<HelperClient> {
    const client = await connect({ env: this.env, helper: helperProgram, client: 'test' });
    this.clients.push(client);
    return client;
  }

  /** A branch with a program of ours as its agent. */
  async start(
    client: HelperClient,
    folder: string,
    script = 'sleep 100000',
    more: { name?: string } = {},
  ): Promise<Branch> {
    return client.request('bough/start', { folder, agent: 'test', command: ['sh', '-c', script], ...more });
  }

  /** Runs a line of shell in a branch; fails with what it said unless it ends well. */
  async sh(client: HelperClient, branch: Branch, line: string): Promise<string> {
    const { exitCode, stdout, stderr } = await client.request('bough/exec', {
      branch: branch.id,
      command: ['sh', '-c', line],
    });
    if (exitCode !== 0) throw new Error(`"${line}" ended with ${exitCode}: ${stderr}`);
    return stdout;
  }

  store(folder: string): StorePlaces {
    return storePlaces(places(this.env), folder);
  }

  get state(): string {
    return places(this.env).state;
  }

  /** Pids of the helper and of what it started, by what they were started with. */
  processes(pattern: RegExp): { readonly pid: number; readonly args: string }[] {
    return readdirSync('/proc').flatMap((name) => {
      if (!/^\d+$/.test(name)) return [];
      try {
        const args = readFileSync(join('/proc', name, 'cmdline'), 'utf8').replaceAll('\0', ' ');
        // A zombie has no command line, and is no process that runs.
        return args.includes(this.scratch.path) && pattern.test(args) ? [{ pid: Number(name), args }] : [];
      } catch {
        return [];
      }
    });
  }

  boughfs(): number[] {
    return this.processes(/boughfs --store/).map(({ pid }) => pid);
  }

  /** Ends the helper as a crash would, and waits until it is gone. */
  async killHelper(client: HelperClient): Promise<void> {
    process.kill(client.pid, 'SIGKILL');
    await client.closed;
  }

  leftovers(): Leftovers {
    const stores = join(this.state, 'stores');
    const names = (folder: string) => {
      try {
        return readdirSync(folder).map((name) => join(folder, name));
      } catch {
        return [];
      }
    };
    return {
      mounts: mountsBelow(this.scratch.path),
      processes: this.processes(/bwrap/).map(({ pid, args }) => `${pid} ${args.slice(-60)}`),
      folders: names(stores).flatMap((store) => [...names(join(store, 'branches')), ...names(join(store, 'mounts'))]),
    };
  }

  async nothingLeft(): Promise<void> {
    await until('nothing is left', () =>
      Object.values(this.leftovers()).every((list: readonly string[]) => list.length === 0),
    ).catch(() => {
      throw new Error(`left over: ${JSON.stringify(this.leftovers(), null, 1)}`);
    });
  }

  /** Ends everything that was started here and removes the scratch folder, whatever state it is in. */
  async end(): Promise<void> {
    for (const client of this.clients) client.close();
    // The helper first: it would start a file server again. What it was just starting shows a moment after its end, so that
    // nobody has to be there several times in a row.
    for (let tries = 0, quiet = 0; tries < 1000 && quiet < 5; tries++) {
      const helpers = this.helpers();
      const all = helpers.length > 0 ? helpers : this.processes(/bwrap|boughfs --store/).map(({ pid }) => pid);
      quiet = all.length === 0 ? quiet + 1 : 0;
      for (const pid of all) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has ended meanwhile.
        }
      }
      await pause(20);
    }
    await this.scratch.remove();
  }

  /** Also one that is only starting: known by the folders in its environment. */
  private helpers(): number[] {
    return readdirSync('/proc')
      .filter((name) => {
        if (!/^\d+$/.test(name)) return false;
        try {
          const helper = readFileSync(join('/proc', name, 'cmdline'), 'utf8').includes('helper.js');
          return helper && readFileSync(join('/proc', name, 'environ'), 'utf8').includes(`=${this.scratch.path}/`);
        } catch {
          return false;
        }
      })
      .map(Number);
  }
}

/** Of the environment of this run what has to reach the helper. */
function passed(names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

export function equal(actual: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: expected ${b}, got ${a}`);
}

export function ensure(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** The code of the error that the promise must end in. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
  throw new Error('it was expected to fail');
}

export async function branchNow(client: HelperClient, branch: Branch): Promise<Branch> {
  const { branches } = await client.request('bough/list', { folder: branch.workspace });
  const found = branches.find(({ id }) => id === branch.id);
  if (!found) throw new Error(`the branch ${branch.name} is gone`);
  return found;
}
