// Mounts of one folder of a branch: what can be reached from inside, what the folder's own fate does to the mount, restarts, and
// what is refused. Over real mounts; the cases themselves run in one as the target `part`.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, Server, until, writeTree, type Checks, type Scratch } from '../harness.js';

/** Node has no name for it. */
const ESTALE = 116;

const text = (path: string) => readFileSync(path, 'utf8');
const names = (path: string) => readdirSync(path).sort();

async function refused(code: string, body: () => Promise<unknown>): Promise<void> {
  await assert.rejects(body, (error: { code?: string }) => {
    assert.equal(error.code, code);
    return true;
  });
}

export async function parts(scratch: Scratch, checks: Checks): Promise<void> {
  const base = scratch.folder('parts', 'base');
  writeTree(base, { 'a/b/file': 'file', 'a/b/sub/deep': 'deep', 'a/b/x.key': 'key', 'a/beside': 'x', other: 'x' });
  const settings = {
    base,
    store: scratch.folder('parts', 'store'),
    socket: join(scratch.path, 'parts', 'control'),
    hide: ['*.key', 'a/secret'],
  };
  writeTree(base, { 'a/secret/file': 'x' });
  let server = await Server.start(settings);
  const at = scratch.folder('parts', 'at');
  const whole = scratch.folder('parts', 'whole');
  const before = checks.passed;
  try {
    const branch = await server.mountedBranch('base', at, 'a/b');
    const info = () => server.client.request('branch.info', { branch });

    await checks.check('[part] only the folder is there, and hide rules hold', async () => {
      assert.deepEqual(names(at), ['file', 'sub']);
      assert.equal(text(join(at, 'sub', 'deep')), 'deep');
      assert.equal(existsSync(join(at, 'x.key')), false);
      assert.throws(() => writeFileSync(join(at, 'new.key'), ''), { code: 'EACCES' });
      assert.equal(statSync(join(at, 'sub', '..')).ino, statSync(at).ino);
      const listed = await run('ls', ['-ai', at]);
      assert.equal(listed.status, 0, listed.err);
      const found = await run('find', [at, '-name', 'beside', '-o', '-name', 'other']);
      assert.equal(found.out, '');
      assert.equal((await info()).mountPath, 'a/b');
    });

    await checks.check('[part] changes are the branch’s, and are committed to their place', async () => {
      writeFileSync(join(at, 'file'), 'changed');
      mkdirSync(join(at, 'made'));
      renameSync(join(at, 'sub', 'deep'), join(at, 'made', 'deep'));
      const { changes } = await server.client.request('branch.diff', { branch });
      assert.deepEqual(changes.map((change) => change.path).sort(), ['a/b/file', 'a/b/made/deep']);
      await server.client.request('branch.commit', { branch, paths: ['a/b'] });
      assert.equal(text(join(base, 'a', 'b', 'file')), 'changed');
      assert.equal(text(join(base, 'a', 'b', 'made', 'deep')), 'deep');
    });

    await checks.check('[part] a commit of a child shows at once, also one that moves the folder', async () => {
      assert.equal(text(join(at, 'file')), 'changed');
      const child = await server.mountedBranch(branch, whole);
      writeFileSync(join(whole, 'a', 'b', 'file'), 'by the child');
      writeFileSync(join(whole, 'a', 'b', 'fresh'), 'fresh');
      renameSync(join(whole, 'a', 'b'), join(whole, 'moved'));
      await server.client.request('branch.commit', { branch: child });
      assert.equal(text(join(at, 'file')), 'by the child');
      assert.deepEqual(names(at), ['file', 'fresh', 'made', 'sub']);
      writeFileSync(join(at, 'later'), 'later');
      const { entries } = await server.client.request('branch.readdir', { branch, side: 'branch', path: 'moved' });
      assert.equal(entries.length, 5);
    });

    for (const how of ['stop', 'kill'] as const) {
      await checks.check(`[part] after ${how} the same folder is back`, async () => {
        await server[how]();
        server = await Server.start(settings);
        assert.equal((await info()).mountPath, 'a/b');
        assert.deepEqual(names(at), ['file', 'fresh', 'later', 'made', 'sub']);
      });
    }

    await checks.check('[part] the base may lose the folder', async () => {
      renameSync(join(base, 'a', 'b'), join(base, 'a', 'gone'));
      assert.equal(text(join(at, 'file')), 'by the child');
      writeFileSync(join(at, 'still'), 'here');
      assert.equal(text(join(at, 'still')), 'here');
      renameSync(join(base, 'a', 'gone'), join(base, 'a', 'b'));
    });

    await checks.check('[part] a commit that removes the folder leaves a mount of nothing', async () => {
      rmSync(join(base, 'a', 'b', 'x.key')); // what is hidden in a folder keeps it from being removed
      const child = await server.mountedBranch(branch, scratch.folder('parts', 'remover'));
      const removed = await run('rm', ['-r', join(scratch.path, 'parts', 'remover', 'moved')]);
      assert.equal(removed.status, 0, removed.err);
      const { commit } = await server.client.request('branch.commit', { branch: child });
      assert.throws(() => readdirSync(at), { errno: -ESTALE });
      assert.throws(() => writeFileSync(join(at, 'x'), ''), { errno: -ESTALE });
      await server.client.request('commit.undo', { commit });
      await until('the folder is back', () => {
        try {
          return names(at).length === 6;
        } catch {
          return false;
        }
      });
    });

    await checks.check('[part] what cannot be shown is refused by code', async () => {
      await server.client.request('branch.unmount', { branch });
      assert.equal((await info()).mountPath, undefined);
      const mount = (path: string) => server.client.request('branch.mount', { branch, at, path });
      await refused('E_NO_PATH', () => mount('none'));
      await refused('E_NO_PATH', () => mount('a/secret'));
      await refused('E_NO_PATH', () => mount('other'));
      await refused('E_BAD_REQUEST', () => mount('../a'));
      await refused('E_BAD_REQUEST', () => mount('/a'));
      await mount('a');
      assert.deepEqual(names(at), ['beside']);
      await refused('E_MOUNT', () => mount('moved'));
    });

    await checks.check('[part] the store is whole', async () => {
      const { ok, problems } = await server.client.request('store.check', {});
      assert.ok(ok, problems.join('; '));
    });
  } finally {
    await server.stop();
  }
  console.log(`part: ${String(checks.passed - before)} checks of what a mount of one folder does`);
}
