// A base, a store and the boughfs on them, as often anew as a test kills it; and everything that can be seen of them as one
// value, so that "as before or as after, and nothing between" is one comparison.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Scratch } from '../harness.js';
import { Server } from '../harness.js';
import { differences, type FileOp, type Tree, type Worker } from '../model/worker.js';

/** The base's tree, and per branch (by its name) its state and its tree. */
export interface Sight {
  readonly base: Tree;
  readonly branches: Readonly<Record<string, { readonly state: string; readonly tree: Tree | null }>>;
}

export class Arena {
  private serverNow: Server | null = null;
  private runs = 0;
  private folder = '';

  constructor(
    readonly scratch: Scratch,
    readonly worker: Worker,
  ) {}

  get base(): string {
    return join(this.folder, 'base');
  }

  get server(): Server {
    if (this.serverNow === null) throw new Error('boughfs does not run');
    return this.serverNow;
  }

  get client(): Server['client'] {
    return this.server.client;
  }

  /** A new base (a copy of the template) and an empty store. */
  async renew(): Promise<void> {
    await this.clear();
    this.folder = this.scratch.folder(String(this.runs++));
    mkdirSync(this.base);
    await this.worker.copy(await this.template(), this.base);
  }

  private async template(): Promise<string> {
    const template = join(this.scratch.path, 'template');
    if (this.runs > 1) return template;
    mkdirSync(template);
    for (const op of templateOperations) await this.succeed(template, op);
    return template;
  }

  async start(environment: NodeJS.ProcessEnv = {}): Promise<void> {
    this.serverNow = await Server.start({
      base: this.base,
      store: join(this.folder, 'store'),
      socket: join(this.folder, 'socket'),
      failPoints: true,
      environment,
    });
  }

  async kill(): Promise<void> {
    await this.serverNow?.kill();
    this.serverNow = null;
  }

  async clear(): Promise<void> {
    await this.kill();
    if (this.folder === '') return;
    await this.scratch.detach(this.folder);
    rmSync(this.folder, { recursive: true, force: true });
    this.folder = '';
  }

  mountPoint(name: string): string {
    return join(this.folder, 'mounts', name);
  }

  /** A mounted branch with changes of its own; gives its id. */
  async branch(name: string, parent: string, edits: readonly FileOp[]): Promise<string> {
    const { branches } = await this.client.request('branch.create', {
      parent,
      count: 1,
      group: 'independent',
      names: [name],
    });
    const id = branches[0]?.id ?? '';
    const at = this.mountPoint(name);
    mkdirSync(at, { recursive: true });
    await this.client.request('branch.mount', { branch: id, at });
    for (const op of edits) await this.succeed(at, op);
    return id;
  }

  /** Does an operation that has to succeed. */
  async succeed(folder: string, op: FileOp): Promise<void> {
    const [result] = await this.worker.op([folder], op);
    if (typeof result === 'string' && /^E[A-Z]+$/.test(result)) throw new Error(`${JSON.stringify(op)}: ${result}`);
  }

  /** Everything that can be seen. Live branches that are not mounted are, for it. */
  async look(folderTimes = true): Promise<Sight> {
    const { branches } = await this.client.request('branch.list', {});
    const seen: Record<string, { state: string; tree: Tree | null }> = {};
    for (const branch of branches) {
      let tree: Tree | null = null;
      if (branch.state === 'live') {
        let at = branch.mount;
        if (at === undefined) {
          at = this.mountPoint(`look-${branch.id}`);
          mkdirSync(at, { recursive: true });
          await this.client.request('branch.mount', { branch: branch.id, at });
        }
        tree = await this.worker.dump(at, folderTimes);
      }
      seen[branch.name] = { state: branch.state, tree };
    }
    return { base: await this.worker.dump(this.base, folderTimes), branches: seen };
  }

  /** What must hold at any time. */
  async sound(): Promise<void> {
    const check = await this.client.request('store.check', {});
    if (!check.ok) throw new Error(`The store has problems: ${check.problems.join('; ')}`);
    const staged = readdirSync(this.base, { recursive: true, encoding: 'latin1' }).filter((path) =>
      path.includes('.bough-stage-'),
    );
    if (staged.length > 0) throw new Error(`Staging names are left in the base: ${staged.join(', ')}`);
  }
}

/** How a sight differs from another; empty if it does not. */
export function unlike(is: Sight, wanted: Sight): readonly string[] {
  const lines = differences(is.base, wanted.base).map((line) => `base: ${line}`);
  for (const name of new Set([...Object.keys(is.branches), ...Object.keys(wanted.branches)])) {
    const [a, b] = [is.branches[name], wanted.branches[name]];
    if (a?.state !== b?.state) lines.push(`${name}: is ${a?.state ?? 'gone'}, wanted ${b?.state ?? 'gone'}`);
    else lines.push(...differences(a?.tree ?? {}, b?.tree ?? {}).map((line) => `${name}: ${line}`));
  }
  return lines;
}

const OLD = 1_200_000_000;
const folders = ['', 'src', 'src/deep', 'docs'];
const templateOperations: readonly FileOp[] = [
  ...folders.slice(1).map((path) => ({ kind: 'mkdir', path, mode: 0o755 })),
  { kind: 'create', path: 'README', data: 'read me\n', mode: 0o644 },
  { kind: 'create', path: 'src/main', data: 'main\n'.repeat(100), mode: 0o755 },
  { kind: 'create', path: 'src/deep/one', data: 'one\n', mode: 0o600 },
  { kind: 'link', path: 'src/deep/one', to: 'src/two' },
  { kind: 'create', path: 'src/gone', data: 'soon gone\n', mode: 0o644 },
  { kind: 'create', path: 'docs/large', data: 'large\n'.repeat(50_000), mode: 0o644 },
  { kind: 'create', path: 'docs/kind', data: 'a file\n', mode: 0o644 },
  { kind: 'symlink', path: 'docs/link', target: '../README' },
  { kind: 'setxattr', path: 'README', name: 'user.note', data: 'base', flags: 0 },
  ...[
    'README',
    'src/main',
    'src/deep/one',
    'src/gone',
    'docs/large',
    'docs/kind',
    'docs/link',
    'docs',
    'src/deep',
    'src',
  ].map((path) => ({ kind: 'utime', path, time: OLD })),
];
