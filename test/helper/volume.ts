// Names that no person would choose, thousands of files, and a hundred branches one after the other: what is left must not grow.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until, type Checks } from '../harness.js';
import { ensure, equal, World } from './world.js';

export async function volume(checks: Checks): Promise<void> {
  await checks.check('names with newlines and of bytes that are no text', strangeNames);
  await checks.check('5,000 changed files: diff in pages, commit, undo', manyFiles);
  await checks.check('100 branches made and discarded leave nothing', hundredCycles);
}

async function strangeNames(): Promise<void> {
  const world = new World('names');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    const script = [
      'printf 1 > "$(printf "new\\nline")"',
      'printf 2 > "$(printf "bytes-\\377-end")"',
      'printf 3 > "-rf"',
      'printf 4 > "@at"',
      'printf 5 > ".bough"',
      'mkdir "*"; printf 6 > "*/?"',
      `printf 7 > "$(printf "%0255d" 7)"`,
    ].join('\n');
    await world.sh(client, branch, script);
    const { changes } = await client.request('bough/diff', { branch: branch.id });
    const bytes = changes.find(({ path }) => typeof path !== 'string');
    equal(bytes?.path, { b64: Buffer.from('bytes-\xff-end', 'latin1').toString('base64') }, 'a name that is no text');
    if (!bytes) throw new Error('the name');
    const read = await client.request('bough/read', { branch: branch.id, side: 'branch', path: bytes.path });
    equal(Buffer.from(read.data, 'base64').toString(), '2', 'its content');
    const { text } = await client.request('bough/patch', { branch: branch.id });
    ensure(text.includes('"b/bytes-\\377-end"') && text.includes('"b/new\\nline"'), 'both in the patch');
    equal((await client.request('bough/revert', { branch: branch.id, paths: ['-rf', '@at'] })).reverted, 2, 'reverted');
    await client.request('bough/commit', { branch: branch.id, paths: [bytes.path] });
    await client.request('bough/commit', { branch: branch.id });
    const names = readdirSync(folder, { encoding: 'buffer' })
      .map((name) => name.toString('latin1'))
      .sort();
    equal(
      names,
      ['*', '.bough', `${'0'.repeat(254)}7`, 'a.txt', 'bytes-\xff-end', 'new\nline'].sort(),
      'names in the folder',
    );
  } finally {
    await world.end();
  }
}

async function manyFiles(): Promise<void> {
  const world = new World('files');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'mkdir d; cd d; i=0; while [ $i -lt 5000 ]; do echo $i > f$i; i=$((i+1)); done');
    const page = await client.request('bough/diff', { branch: branch.id, from: 4000, limit: 500 });
    equal([page.total, page.changes.length], [5000, 500], 'a page of the diff');
    const { branches } = await client.request('bough/list', { folder });
    equal(
      branches.map(({ changes }) => changes),
      [5000],
      'the count in the list',
    );
    const { paths } = await client.request('bough/commit', { branch: branch.id });
    ensure(paths >= 5000, `committed paths: ${paths}`);
    equal(readdirSync(join(folder, 'd')).length, 5000, 'files in the folder');
    equal(readFileSync(join(folder, 'd', 'f4321'), 'utf8'), '4321\n', 'one of them');
    await client.request('bough/undo', { folder });
    ensure(!existsSync(join(folder, 'd')), 'the undo took them away');
  } finally {
    await world.end();
  }
}

async function hundredCycles(): Promise<void> {
  const world = new World('cycles');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    writeFileSync(join(folder, 'big'), Buffer.alloc(1 << 20, 1));
    const client = await world.client();
    const cycle = async () => {
      const branch = await world.start(client, folder, 'echo > started; sleep 100000');
      const at = branch.folder ?? '';
      writeFileSync(join(at, 'big'), Buffer.alloc(1 << 20, 2));
      writeFileSync(join(at, 'new'), Buffer.alloc(1 << 16, 3));
      await client.request('bough/abort', { branch: branch.id });
    };
    const objects = async () => (await client.request('bough/open', { folder })).store?.objects;
    await cycle();
    await until('the first one’s objects are gone', async () => (await objects()) === 0);
    for (let count = 1; count < 100; count++) await cycle();
    equal(world.leftovers(), { mounts: [], processes: [], folders: [] }, 'after 100 branches');
    await until('their objects are gone', async () => (await objects()) === 0);
    const { store } = await client.request('bough/open', { folder });
    // What grows is the log, which is folded at 64 MiB: some hundred bytes for each branch, none of its content.
    ensure((store?.bytes ?? Infinity) < 1 << 20, `the store has ${store?.bytes} bytes`);
    equal([store?.branches, store?.mounts], [0, 0], 'branches and mounts of the store');
    equal(await client.request('bough/gc', {}), { mounts: 0, processes: 0, files: 0 }, 'nothing for gc to do');
  } finally {
    await world.end();
  }
}
