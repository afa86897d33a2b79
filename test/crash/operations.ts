// The operations that are killed: what has to be there before each, the one request that must happen or not, and what must
// work afterwards.
import type { FileOp } from '../model/worker.js';
import type { Arena } from './arena.js';

export interface Ready {
  /** The request. Its ids were learnt before the kill and hold after a restart. */
  act(): Promise<unknown>;
  /** After it happened: takes it back, if it can be; the base's tree must be as before. */
  takeBack?(): Promise<unknown>;
}

export interface Operation {
  readonly name: string;
  prepare(arena: Arena): Promise<Ready>;
}

/** Something of everything: new, changed, gone, renamed, another kind, links, attributes. */
export const EDITS: readonly FileOp[] = [
  { kind: 'replace', path: 'README', data: 'read me again\n' },
  { kind: 'setxattr', path: 'README', name: 'user.note', data: 'branch', flags: 0 },
  { kind: 'append', path: 'src/main', data: 'more\n' },
  { kind: 'chmod', path: 'src/main', mode: 0o4711 },
  { kind: 'write', path: 'docs/large', data: 'LARGE', offset: 100_000 },
  { kind: 'unlink', path: 'src/gone' },
  { kind: 'rename', path: 'src/deep', to: 'src/moved', flags: 0 },
  { kind: 'unlink', path: 'docs/kind' },
  { kind: 'mkdir', path: 'docs/kind', mode: 0o700 },
  { kind: 'create', path: 'docs/kind/inside', data: 'inside\n', mode: 0o640 },
  { kind: 'mkdir', path: 'empty', mode: 0o2775 },
  { kind: 'create', path: 'g\xff\n', data: 'odd\n', mode: 0o644 },
  { kind: 'link', path: 'g\xff\n', to: 'src/odd' },
  { kind: 'symlink', path: 'src/link', target: 'nowhere' },
  { kind: 'chmod', path: 'src', mode: 0o711 },
];

const OTHER_EDITS: readonly FileOp[] = [
  { kind: 'create', path: 'other', data: 'other\n', mode: 0o644 },
  { kind: 'append', path: 'docs/large', data: 'other\n' },
];

async function undoOf(arena: Arena): Promise<unknown> {
  const { commits } = await arena.client.request('commit.list', {});
  return await arena.client.request('commit.undo', { commit: commits[0]?.commit ?? '' });
}

/** Requests after which what they did is also made durable, so that the points of that are passed as well. */
function durably(arena: Arena, request: () => Promise<unknown>): () => Promise<void> {
  return async () => {
    await request();
    await arena.client.request('store.sync', {});
  };
}

export const operations: readonly Operation[] = [
  {
    name: 'commit into the base',
    async prepare(arena) {
      await arena.branch('witness', 'base', OTHER_EDITS);
      const branch = await arena.branch('mine', 'base', EDITS);
      return {
        act: durably(arena, () => arena.client.request('branch.commit', { branch })),
        takeBack: () => undoOf(arena),
      };
    },
  },
  {
    name: 'commit into a branch',
    async prepare(arena) {
      const parent = await arena.branch('parent', 'base', OTHER_EDITS);
      const branch = await arena.branch('mine', parent, EDITS);
      return {
        act: durably(arena, () => arena.client.request('branch.commit', { branch })),
        takeBack: () => undoOf(arena),
      };
    },
  },
  {
    name: 'undo of a commit into the base',
    async prepare(arena) {
      const branch = await arena.branch('mine', 'base', EDITS);
      await arena.branch('witness', 'base', OTHER_EDITS);
      const { commit } = await arena.client.request('branch.commit', { branch });
      await arena.client.request('store.sync', {});
      return { act: durably(arena, () => arena.client.request('commit.undo', { commit })) };
    },
  },
  {
    name: 'undo of a commit into a branch',
    async prepare(arena) {
      const parent = await arena.branch('parent', 'base', OTHER_EDITS);
      const branch = await arena.branch('mine', parent, EDITS);
      const { commit } = await arena.client.request('branch.commit', { branch });
      return { act: durably(arena, () => arena.client.request('commit.undo', { commit })) };
    },
  },
  {
    name: 'branch',
    async prepare(arena) {
      const parent = await arena.branch('parent', 'base', EDITS);
      const names = ['one', 'two', 'three'];
      return {
        act: durably(arena, () =>
          arena.client.request('branch.create', { parent, count: 3, group: 'exclusive', names }),
        ),
      };
    },
  },
  {
    name: 'abort',
    async prepare(arena) {
      const branch = await arena.branch('parent', 'base', EDITS);
      await arena.branch('child', branch, OTHER_EDITS);
      await arena.branch('witness', 'base', OTHER_EDITS);
      return { act: durably(arena, () => arena.client.request('branch.abort', { branch, recursive: true })) };
    },
  },
  {
    name: 'rebase',
    async prepare(arena) {
      const branch = await arena.branch('mine', 'base', EDITS);
      const other = await arena.branch('other', 'base', [OTHER_EDITS[0] as FileOp]);
      await arena.client.request('branch.commit', { branch: other });
      await arena.client.request('store.sync', {});
      return { act: durably(arena, () => arena.client.request('branch.rebase', { branch })) };
    },
  },
];
