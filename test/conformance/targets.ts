// The folders that the cases run in. A case's files come first from the folder's own maker, so that each case meets them once
// as plain files, once as files of the base, once as files of a parent branch and once as files of the branch itself.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { run, Server, type Scratch, root } from '../harness.js';

export interface Target {
  readonly name: string;
  readonly shows: string;
  /** Makes the cases' files and gives the folder to run in. */
  prepare(): Promise<string>;
  /** After the cases: what else must hold. Throws if it does not. */
  verify(): Promise<void>;
}

const runner = join(root, 'test', 'conformance', 'runner.py');
const python = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };

async function build(folder: string): Promise<void> {
  const built = await run('python3', [runner, 'prepare', folder], { env: python });
  if (built.status !== 0) throw new Error(`The cases' files cannot be made in ${folder}:\n${built.err}`);
}

/** What a tree is, as text: equal before and after means untouched. */
export async function describeTree(folder: string): Promise<string> {
  const told = await run('python3', [join(root, 'test', 'conformance', 'trees.py'), folder], { env: python });
  if (told.status !== 0) throw new Error(told.err);
  return told.out;
}

function assertSame(what: string, before: string, after: string): void {
  if (before === after) return;
  const old = new Set(before.split('\n'));
  const now = new Set(after.split('\n'));
  const lines = [
    ...[...old].filter((line) => !now.has(line)).map((line) => `- ${line}`),
    ...[...now].filter((line) => !old.has(line)).map((line) => `+ ${line}`),
  ];
  throw new Error(`${what} changed:\n${lines.slice(0, 20).join('\n')}`);
}

/** A plain folder: what a case expects must hold here first of all. */
export function native(scratch: Scratch): Target {
  return {
    name: 'native',
    shows: 'the file system below, without Bough',
    async prepare() {
      const folder = scratch.folder('native');
      await build(folder);
      return folder;
    },
    verify: () => Promise.resolve(),
  };
}

/** The store and the server that the other targets share. */
export class Branches {
  private constructor(
    readonly server: Server,
    private readonly scratch: Scratch,
    private readonly base: string,
    private readonly baseBefore: string,
  ) {}

  static async start(scratch: Scratch): Promise<Branches> {
    const base = scratch.folder('base');
    await build(base);
    await build(scratch.folder('base', 'part'));
    const baseBefore = await describeTree(base);
    const server = await Server.start({ base, store: scratch.folder('store'), socket: join(scratch.path, 'control') });
    return new Branches(server, scratch, base, baseBefore);
  }

  /** The cases' files are files of the base. */
  overBase(): Target {
    return {
      name: 'branch',
      shows: 'a branch over files of the base',
      prepare: async () => {
        const at = this.scratch.folder('branch');
        await this.server.mountedBranch('base', at);
        return at;
      },
      verify: async () => assertSame('The base', this.baseBefore, await describeTree(this.base)),
    };
  }

  /** The cases' files are in a folder of the base, and the mount shows that folder alone. */
  part(): Target {
    return {
      name: 'part',
      shows: 'one folder of a branch, mounted by itself',
      prepare: async () => {
        const at = this.scratch.folder('part');
        await this.server.mountedBranch('base', at, 'part');
        return at;
      },
      verify: async () => assertSame('The base', this.baseBefore, await describeTree(this.base)),
    };
  }

  /** The cases' files were made in the branch itself. */
  own(): Target {
    return {
      name: 'own',
      shows: 'a branch with files of its own',
      prepare: async () => {
        const at = this.scratch.folder('own');
        await this.server.mountedBranch('base', at);
        const folder = join(at, 'own');
        const made = await run('mkdir', [folder]);
        if (made.status !== 0) throw new Error(made.err);
        await build(folder);
        return folder;
      },
      verify: async () => assertSame('The base', this.baseBefore, await describeTree(this.base)),
    };
  }

  /** The cases' files are files of a parent branch, which stays mounted. */
  nested(): Target {
    let parentBefore = '';
    const parentAt = () => this.scratch.folder('parent');
    return {
      name: 'nested',
      shows: 'a branch of a branch of a branch',
      prepare: async () => {
        const parent = await this.server.mountedBranch('base', parentAt());
        const folder = join(parentAt(), 'nested');
        const made = await run('mkdir', [folder]);
        if (made.status !== 0) throw new Error(made.err);
        await build(folder);
        parentBefore = await describeTree(folder);
        const { branches } = await this.server.client.request('branch.create', {
          parent,
          count: 1,
          group: 'independent',
        });
        const middle = branches[0]?.id ?? '';
        const at = this.scratch.folder('nested');
        await this.server.mountedBranch(middle, at);
        return join(at, 'nested');
      },
      verify: async () => {
        assertSame('The parent branch', parentBefore, await describeTree(join(parentAt(), 'nested')));
        assertSame('The base', this.baseBefore, await describeTree(this.base));
      },
    };
  }

  /** Ends the server; its store must be whole, and nothing of it may stay mounted. */
  async stop(): Promise<void> {
    const { ok, problems } = await this.server.client.request('store.check', {});
    const ended = await this.server.stop();
    if (!ok) throw new Error(`store.check: ${problems.join('; ')}`);
    if (ended !== 0) throw new Error(`boughfs ended with ${String(ended)}: ${this.server.log()}`);
  }
}

export function removeTree(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
