// commit and undo into the folder on disk, with git, and conflicts. Steps of main.ts.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { differences, snapshotOf } from '../demo/tree.js';
import type { Command } from './command.js';
import { runProgram } from './run-program.js';
import type { Suite } from './suite.js';

export async function commitTests(suite: Suite, bough: Command): Promise<void> {
  const { folder, environment } = bough.world;
  const git = async (...args: string[]) =>
    (await runProgram(['git', ...args], { cwd: folder, env: environment })).stdout;
  const before = snapshotOf(folder);

  await suite.test('a part of a branch is committed alone', async () => {
    await bough.json('abort', 'second');
    const result = await bough.json('commit', 'session', '--path', 'later.txt');
    assert.deepEqual([result['into'], result['partial'], result['paths']], ['base', true, 1]);
    assert.equal(readFileSync(join(folder, 'later.txt'), 'utf8'), 'later\n');
    assert.deepEqual(differences(before, snapshotOf(folder)), ['later.txt']);
  });

  await suite.test('undo takes it back exactly', async () => {
    await bough.json('undo');
    assert.deepEqual(differences(before, snapshotOf(folder)), []);
  });

  await suite.test("a conflict is listed, and the person's file stays", async () => {
    const file = join(folder, 'src', 'schedule.js');
    const original = readFileSync(file, 'utf8');
    const mine = original.replace('a.start <= b.end', 'a.start + 0 < b.end + 0');
    assert.notEqual(mine, original);
    writeFileSync(file, mine);
    const error = await bough.failure('E_CONFLICT', 'commit', 'session');
    const conflicts = error['conflicts'] as { path: string }[];
    assert.deepEqual(
      conflicts.map(({ path }) => path),
      ['src/schedule.js'],
    );
    assert.equal(readFileSync(file, 'utf8'), mine);
    assert.ok(!existsSync(join(folder, 'later.txt')), 'all or nothing');
  });

  await suite.test('resolve lists conflicts and settles them by a side or a content', async () => {
    assert.match(
      await bough.text('resolve', 'session'),
      /^1 conflict of session .*\n {2}src\/schedule\.js {2}both-changed$/m,
    );
    await bough.failure('E_USAGE', 'resolve', 'session', 'src/schedule.js');
    await bough.text('resolve', 'session', 'src/schedule.js', '--take', 'theirs');
    assert.match(await bough.text('show', 'session', 'src/schedule.js'), /a\.start \+ 0 </);
    const merged = join(folder, '..', 'merged.js');
    const content = readFileSync(join(folder, 'src', 'schedule.js'), 'utf8').replaceAll(' + 0', '');
    writeFileSync(merged, content);
    const { conflicts } = await bough.json('resolve', 'session', 'src/schedule.js', '--with', merged);
    assert.deepEqual(conflicts, []);
    assert.equal(await bough.text('show', 'session', 'src/schedule.js'), content);
  });

  await suite.test('other lines of the same file are merged', async () => {
    const file = join(folder, 'README.md');
    writeFileSync(file, readFileSync(file, 'utf8').replace('Orders of a small shop.', 'Orders of a very small shop.'));
    const result = await bough.json('commit', 'session', '--git', 'Orders: three repairs');
    assert.deepEqual(result['merged'], ['README.md']);
    assert.match(readFileSync(file, 'utf8'), /very small shop[^]*more\n$/);
    assert.equal((await runProgram(['npm', 'test'], { cwd: folder, env: environment })).status, 0);
    assert.equal(await git('log', '-1', '--format=%s'), 'Orders: three repairs\n');
    assert.match(await git('show', '--stat', 'HEAD'), /src\/pages\.js/);
    assert.ok(existsSync(join(folder, 'new', 'empty')));
    assert.ok(existsSync(join(folder, '.env')));
  });
}
