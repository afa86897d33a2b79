// The helper killed at random moments of a commit, into the folder and into a branch: the tree that was committed to is, whole, the
// one before or the one after, and the branch's state says which.
import {
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  mkdirSync,
  chmodSync,
} from 'node:fs';
import { join } from 'node:path';
import type { HelperClient } from '../../helper/api/client.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { pause, until, type Checks } from '../harness.js';
import { ensure, equal, World } from './world.js';

const ROUNDS = 44;

export async function commitKills(checks: Checks): Promise<void> {
  await checks.check(`the helper killed at ${ROUNDS} random moments of a commit`, killedInCommits);
}

async function killedInCommits(): Promise<void> {
  const seed = Number(process.env['BOUGH_SEED'] ?? 1);
  const random = generator(seed);
  const world = new World('ckill');
  const happened = { before: 0, after: 0 };
  try {
    const folder = world.workspace('ws', { 'a.txt': 'zero\n', 'b/c.txt': 'zero\n', 'd.txt': 'zero\n' });
    let client = await world.client();
    const parent = await client.request('bough/start', { folder, agent: 'none', name: 'parent' });
    for (let round = 0; round < ROUNDS; round++) {
      const intoBranch = round % 2 === 1;
      const branch = await make(client, folder, intoBranch ? parent : null);
      change(branch.folder ?? '', round);
      const target = intoBranch ? (parent.folder ?? '') : folder;
      const [before, after] = [tree(target), tree(branch.folder ?? '')];
      ensure(before !== after, 'the branch has a change');

      const done = client.request('bough/commit', { branch: branch.id }).then(
        () => true,
        () => false,
      );
      // Most of them before it is done, some while it is answered: a commit takes some 5 to 50 ms here.
      await pause(random() * (round % 4 < 2 ? 60 : 15));
      await world.killHelper(client);
      const answered = await done;

      client = await world.client();
      const now = { committed: false };
      // boughfs goes on by itself: what it had begun may end a moment later.
      await until('the tree and the state agree', async () => {
        const { branches } = await client.request('bough/list', { folder });
        now.committed = branches.find(({ id }) => id === branch.id)?.fileState === 'committed';
        return tree(target) === (now.committed ? after : before);
      }).catch(() => {
        throw new Error(
          `seed ${seed}, round ${round}: committed: ${now.committed}\n${tree(target)}\nbefore:\n${before}\nafter:\n${after}`,
        );
      });
      if (answered) ensure(now.committed, `seed ${seed}, round ${round}: a commit that was answered is there`);
      happened[now.committed ? 'after' : 'before']++;
      if (!now.committed) equal(tree(branch.folder ?? ''), after, 'the work is in the branch');
      await client.request('bough/abort', { branch: branch.id });
    }
    console.log(`       seed ${seed}: ${happened.before} times nothing happened, ${happened.after} times all of it`);
    await until('one mount, its folders and no program are left', () => {
      const { mounts, processes, folders } = world.leftovers();
      return mounts.length === 1 && processes.length === 0 && folders.length === 2;
    });
  } finally {
    await world.end();
  }
}

async function make(client: HelperClient, folder: string, parent: Branch | null): Promise<Branch> {
  if (parent === null) return client.request('bough/start', { folder, agent: 'none' });
  const { branches } = await client.request('bough/branch', { branch: parent.id, count: 1, agent: 'none' });
  const [made] = branches;
  if (!made) throw new Error('no branch was made');
  return made;
}

/** Something of each kind: a change in place, a replaced file, a deletion, a new folder, a link, a mode. */
function change(at: string, round: number): void {
  writeFileSync(join(at, 'a.txt'), `round ${round}\n`);
  rmSync(join(at, 'b'), { recursive: true, force: true });
  mkdirSync(join(at, 'b', `n${round}`), { recursive: true });
  for (let file = 0; file < 12; file++) writeFileSync(join(at, 'b', `n${round}`, `f${file}`), `${round} ${file}\n`);
  rmSync(join(at, 'd.txt'), { force: true });
  rmSync(join(at, 'link'), { force: true });
  symlinkSync(`to ${round}`, join(at, 'link'));
  chmodSync(join(at, 'a.txt'), round % 3 === 0 ? 0o755 : 0o644);
}

/** A whole tree as text: every path with its type, mode and content. */
function tree(at: string, below = ''): string {
  return readdirSync(join(at, below))
    .sort()
    .map((name) => {
      const path = join(below, name);
      const found = lstatSync(join(at, path));
      const mode = (found.mode & 0o7777).toString(8);
      if (found.isDirectory()) return `${path}/ ${mode}\n${tree(at, path)}`;
      if (found.isSymbolicLink()) return `${path} -> ${readlinkSync(join(at, path))}\n`;
      return `${path} ${mode} ${JSON.stringify(readFileSync(join(at, path), 'utf8'))}\n`;
    })
    .join('');
}

/** Numbers from 0 to 1 that a seed repeats (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}
