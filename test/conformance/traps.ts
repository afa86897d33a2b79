// Traps that file systems which stack branches have fallen into, one by one, each with a store of its own, plus what the parts
// promise about each other: frozen on both sides, live base, hide rules, restarts.
import assert from 'node:assert/strict';
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  lchownSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { mountsBelow, run, Server, until, writeTree, type Checks, type Scratch } from '../harness.js';

interface Place {
  readonly base: string;
  readonly at: (name: string) => string;
  readonly server: Server;
  readonly branch: (parent: string, name: string) => Promise<{ id: string; dir: string }>;
  readonly restart: (how: 'stop' | 'kill') => Promise<Place>;
}

let turn = 0;

/** A store over a base of these files, gone afterwards. */
async function store(
  scratch: Scratch,
  files: Readonly<Record<string, string>>,
  body: (place: Place) => Promise<void>,
  options: { hide?: readonly string[]; inside?: boolean } = {},
): Promise<void> {
  const folder = scratch.folder(`trap-${String(turn++)}`);
  const base = scratch.folder(`trap-${String(turn - 1)}`, 'base');
  writeTree(base, files);
  // With `inside`, store and mounts lie in the base itself, as when the base is a whole home.
  const around = options.inside === true ? join(base, 'state') : folder;
  mkdirSync(around, { recursive: true });
  const settings = {
    base,
    store: join(around, 'store'),
    socket: join(folder, 'control'),
    ...(options.hide === undefined ? {} : { hide: options.hide }),
  };
  let server = await Server.start(settings);
  const place = (): Place => ({
    base,
    server,
    at: (name) => join(around, 'mounts', name),
    async branch(parent, name) {
      const dir = join(around, 'mounts', name);
      return { id: await server.mountedBranch(parent, dir), dir };
    },
    async restart(how) {
      await server[how]();
      server = await Server.start(settings);
      return place();
    },
  });
  try {
    await body(place());
    const { ok, problems } = await server.client.request('store.check', {});
    assert.ok(ok, problems.join('; '));
  } finally {
    await server.stop();
  }
  assert.deepEqual(mountsBelow(folder), [], 'mounts that stay');
}

const text = (path: string) => readFileSync(path, 'utf8');
const names = (path: string) => readdirSync(path).sort();
const mode = (path: string) => statSync(path).mode & 0o7777;

function fails(code: string, body: () => unknown): void {
  assert.throws(body, (error: NodeJS.ErrnoException) => {
    assert.equal(error.code, code);
    return true;
  });
}

async function refused(code: string, body: () => Promise<unknown>): Promise<void> {
  await assert.rejects(body, (error: { code?: string }) => {
    assert.equal(error.code, code);
    return true;
  });
}

const OLD = new Date('2001-02-03T04:05:06.789Z');

type Trap = (scratch: Scratch) => Promise<void>;

const list: Record<string, Trap> = {
  'rm and recreate: the new content is there and is what gets committed': (scratch) =>
    store(scratch, { f: 'old', 'd/g': 'old' }, async ({ base, branch, server }) => {
      const { id, dir } = await branch('base', 'a');
      unlinkSync(join(dir, 'f'));
      writeFileSync(join(dir, 'f'), 'new');
      rmSync(join(dir, 'd'), { recursive: true });
      mkdirSync(join(dir, 'd'));
      writeFileSync(join(dir, 'd/h'), 'fresh');
      assert.equal(text(join(dir, 'f')), 'new');
      assert.equal(text(join(base, 'f')), 'old');
      await server.client.request('branch.commit', { branch: id });
      assert.equal(text(join(base, 'f')), 'new');
      assert.deepEqual(names(join(base, 'd')), ['h']);
    }),

  'git init and a first commit': (scratch) =>
    store(scratch, { 'a.txt': 'a' }, async ({ branch }) => {
      const { dir } = await branch('base', 'a');
      const git = (...args: string[]) =>
        run('git', ['-c', 'user.name=x', '-c', 'user.email=x@y', ...args], { cwd: dir });
      for (const args of [
        ['init', '-q'],
        ['add', '.'],
        ['commit', '-qm', 'first'],
      ]) {
        const done = await git(...args);
        assert.equal(done.status, 0, done.err);
      }
      assert.equal((await git('status', '--porcelain')).out, '');
    }),

  'node_modules/@types is reachable': (scratch) =>
    store(scratch, { 'node_modules/@types/node/index.d.ts': 'x' }, async ({ branch }) => {
      const { dir } = await branch('base', 'a');
      assert.equal(text(join(dir, 'node_modules/@types/node/index.d.ts')), 'x');
      writeTree(dir, { 'node_modules/@types/new/index.d.ts': 'y', '@': 'z' });
      assert.deepEqual(names(join(dir, 'node_modules/@types')), ['new', 'node']);
    }),

  'a symlink in the base that leads into the mount does not deadlock': (scratch) =>
    store(scratch, { f: 'x' }, async ({ base, at, branch, server }) => {
      symlinkSync(at('a'), join(base, 'loop'));
      const { id, dir } = await branch('base', 'a');
      const found = await run('ls', ['-lR', `${dir}/`, join(dir, 'loop/f')], { timeoutMs: 60_000 });
      assert.equal(found.status, 0, found.err);
      assert.equal(text(join(dir, 'loop/loop/f')), 'x');
      writeFileSync(join(dir, 'loop/f'), 'y');
      assert.equal(text(join(dir, 'f')), 'y');
      const { changes } = await server.client.request('branch.diff', { branch: id });
      assert.deepEqual(
        changes.map((change) => change.path),
        ['f'],
      );
    }),

  'rmdir of a full folder': (scratch) =>
    store(scratch, { 'd/f': 'x' }, async ({ branch }) => {
      const { dir } = await branch('base', 'a');
      fails('ENOTEMPTY', () => {
        rmdirSync(join(dir, 'd'));
      });
      unlinkSync(join(dir, 'd/f'));
      rmdirSync(join(dir, 'd'));
      assert.deepEqual(names(dir), []);
    }),

  'a folder of the base is renamed': (scratch) =>
    store(scratch, { 'd/f': 'x', 'd/sub/g': 'y' }, async ({ base, branch, server }) => {
      const { id, dir } = await branch('base', 'a');
      renameSync(join(dir, 'd'), join(dir, 'e'));
      assert.equal(text(join(dir, 'e/sub/g')), 'y');
      writeFileSync(join(dir, 'e/sub/g'), 'z');
      const { changes } = await server.client.request('branch.diff', { branch: id });
      assert.deepEqual(changes.map(({ path, kind, from }) => [path, kind, from]).sort(), [
        ['e', 'renamed', 'd'],
        ['e/sub/g', 'modified', undefined],
      ]);
      await server.client.request('branch.commit', { branch: id });
      assert.deepEqual(names(base), ['e']);
      assert.equal(text(join(base, 'e/sub/g')), 'z');
    }),

  'modes of folders stay when a child is written, also through a commit': (scratch) =>
    store(scratch, { 'd/sub/f': 'x' }, async ({ base, branch, server }) => {
      chmodSync(join(base, 'd'), 0o750);
      chmodSync(join(base, 'd/sub'), 0o2711);
      const { id, dir } = await branch('base', 'a');
      writeFileSync(join(dir, 'd/sub/f'), 'y');
      writeFileSync(join(dir, 'd/sub/g'), 'new');
      assert.equal(mode(join(dir, 'd')), 0o750);
      assert.equal(mode(join(dir, 'd/sub')), 0o2711);
      await server.client.request('branch.commit', { branch: id });
      assert.equal(mode(join(base, 'd')), 0o750);
      assert.equal(mode(join(base, 'd/sub')), 0o2711);
    }),

  'a commit keeps empty folders, modes, owners, times, links, holes': (scratch) =>
    store(scratch, { f: 'x' }, async ({ base, branch, server }) => {
      const { id, dir } = await branch('base', 'a');
      mkdirSync(join(dir, 'empty/deep'), { recursive: true });
      chmodSync(join(dir, 'empty/deep'), 0o1770);
      writeFileSync(join(dir, 'run'), '#!/bin/sh\n', { mode: 0o751 });
      linkSync(join(dir, 'run'), join(dir, 'same'));
      symlinkSync('no/where', join(dir, 'link'));
      const fd = openSync(join(dir, 'sparse'), 'w');
      ftruncateSync(fd, 8 << 20);
      writeSync(fd, 'end', (8 << 20) - 3);
      closeSync(fd);
      writeFileSync(join(dir, 'owned'), 'o');
      if (process.getuid?.() === 0) lchownSync(join(dir, 'owned'), 12, 34);
      for (const name of ['run', 'owned', 'empty/deep']) utimesSync(join(dir, name), OLD, OLD);
      const result = await server.client.request('branch.commit', { branch: id });
      assert.deepEqual(result.notApplied, []);
      assert.equal(mode(join(base, 'empty/deep')), 0o1770);
      assert.equal(mode(join(base, 'run')), 0o751);
      assert.equal(statSync(join(base, 'run')).ino, statSync(join(base, 'same')).ino);
      assert.equal(readFileSync(join(base, 'sparse')).length, 8 << 20);
      assert.ok(statSync(join(base, 'sparse')).blocks * 512 < 1 << 20, 'sparse stays sparse');
      for (const name of ['run', 'owned', 'empty/deep']) {
        assert.equal(statSync(join(base, name)).mtimeMs, OLD.getTime(), name);
      }
      if (process.getuid?.() === 0) {
        assert.deepEqual([statSync(join(base, 'owned')).uid, statSync(join(base, 'owned')).gid], [12, 34]);
      }
    }),

  'a commit that meets an immutable or vanished target changes nothing and says so': (scratch) =>
    store(scratch, { f: 'x', g: 'y' }, async ({ base, branch, server }) => {
      const { id, dir } = await branch('base', 'a');
      writeFileSync(join(dir, 'f'), 'changed');
      writeFileSync(join(dir, 'g'), 'changed');
      unlinkSync(join(base, 'g'));
      await refused('E_CONFLICT', () => server.client.request('branch.commit', { branch: id }));
      assert.equal(text(join(base, 'f')), 'x');
      assert.equal(existsSync(join(base, 'g')), false);
      assert.equal(text(join(dir, 'g')), 'changed');
      assert.deepEqual(names(base), ['f']);
    }),

  'branches and mounts outlive a restart and a crash of boughfs': (scratch) =>
    store(scratch, { f: 'x', 'd/g': 'y' }, async (first) => {
      const { id, dir } = await first.branch('base', 'a');
      writeFileSync(join(dir, 'f'), 'changed');
      writeFileSync(join(dir, 'new'), 'n');
      unlinkSync(join(dir, 'd/g'));
      const inode = statSync(join(dir, 'new')).ino;
      const child = await first.branch(id, 'b');
      writeFileSync(join(child.dir, 'new'), 'by the child');
      let place = first;
      for (const how of ['kill', 'stop', 'kill'] as const) {
        place = await place.restart(how);
        assert.equal(text(join(dir, 'f')), 'changed');
        assert.equal(text(join(dir, 'new')), 'n');
        assert.equal(statSync(join(dir, 'new')).ino, inode);
        assert.deepEqual(names(join(dir, 'd')), []);
        assert.equal(text(join(child.dir, 'new')), 'by the child');
        writeFileSync(join(dir, 'f'), 'changed again');
        writeFileSync(join(dir, 'f'), 'changed');
      }
      const { branches } = await place.server.client.request('branch.list', {});
      assert.equal(branches.length, 2);
    }),

  'a commit leaves every other mount alone: no ESTALE, open files go on': (scratch) =>
    store(scratch, { f: 'x', 'd/g': 'y', h: 'z' }, async ({ branch, server, base }) => {
      const one = await branch('base', 'a');
      const two = await branch('base', 'b');
      const three = await branch(two.id, 'c');
      const fd = openSync(join(two.dir, 'f'), 'r+');
      const inner = openSync(join(three.dir, 'd/g'), 'r');
      writeFileSync(join(one.dir, 'f'), 'by one');
      renameSync(join(one.dir, 'd'), join(one.dir, 'e'));
      unlinkSync(join(one.dir, 'h'));
      await server.client.request('branch.commit', { branch: one.id });
      assert.deepEqual(names(base), ['e', 'f']);
      const byte = Buffer.alloc(1);
      assert.equal(readSync(fd, byte, 0, 1, 0), 1);
      assert.equal(byte.toString(), 'x');
      writeSync(fd, 'X', 0);
      assert.equal(readSync(inner, byte, 0, 1, 0), 1);
      assert.equal(byte.toString(), 'y');
      closeSync(fd);
      closeSync(inner);
      // The others see what they saw.
      for (const dir of [two.dir, three.dir]) {
        assert.deepEqual(names(dir), ['d', 'f', 'h']);
        assert.equal(text(join(dir, 'd/g')), 'y');
        assert.equal(text(join(dir, 'h')), 'z');
      }
      assert.equal(text(join(two.dir, 'f')), 'X');
      assert.equal(text(join(three.dir, 'f')), 'x');
    }),

  'siblings that changed different paths both commit; the same path conflicts': (scratch) =>
    store(scratch, { f: 'x', g: 'y', h: 'z' }, async ({ branch, server, base }) => {
      const one = await branch('base', 'a');
      const two = await branch('base', 'b');
      const three = await branch('base', 'c');
      writeFileSync(join(one.dir, 'f'), 'one');
      writeFileSync(join(two.dir, 'g'), 'two');
      writeFileSync(join(three.dir, 'f'), 'three');
      await server.client.request('branch.commit', { branch: one.id });
      await server.client.request('branch.commit', { branch: two.id });
      assert.deepEqual([text(join(base, 'f')), text(join(base, 'g'))], ['one', 'two']);
      await refused('E_CONFLICT', () => server.client.request('branch.commit', { branch: three.id }));
      assert.equal(text(join(base, 'f')), 'one');
      assert.equal(text(join(three.dir, 'f')), 'three');
    }),

  'parallel writers on sibling mounts do not meet': (scratch) =>
    store(scratch, { f: 'x'.repeat(100_000) }, async ({ branch }) => {
      const dirs: string[] = [];
      for (let i = 0; i < 6; i++) dirs.push((await branch('base', `m${String(i)}`)).dir);
      const script = `
import os, sys
n = sys.argv[1]
for i in range(60):
    with open('f', 'r+b') as file:
        file.seek(i * 1000)
        file.write(n.encode() * 1000)
    with open('own%d' % i, 'w') as file:
        file.write(n)
`;
      const ran = await Promise.all(dirs.map((dir, i) => run('python3', ['-c', script, String(i)], { cwd: dir })));
      for (const [i, dir] of dirs.entries()) {
        assert.equal(ran[i]?.status, 0, ran[i]?.err);
        const expected = String(i).repeat(60_000) + 'x'.repeat(40_000);
        assert.equal(text(join(dir, 'f')) === expected, true, `the content of branch ${String(i)}`);
        assert.equal(text(join(dir, 'own59')), String(i));
        assert.equal(names(dir).length, 61);
      }
    }),

  'the copy of a sparse file stays sparse': (scratch) =>
    store(scratch, { f: '' }, async ({ base, branch }) => {
      const fd = openSync(join(base, 'sparse'), 'w');
      ftruncateSync(fd, 256 << 20);
      writeSync(fd, 'x', 100 << 20);
      closeSync(fd);
      const { dir } = await branch('base', 'a');
      const own = openSync(join(dir, 'sparse'), 'r+');
      writeSync(own, 'y', 200 << 20);
      assert.equal(fstatSync(own).size, 256 << 20);
      assert.ok(fstatSync(own).blocks * 512 < 1 << 20, 'blocks in use');
      closeSync(own);
    }),

  'a slow copy does not stall others': (scratch) =>
    store(scratch, { f: 'x' }, async ({ base, branch }) => {
      writeFileSync(join(base, 'big'), Buffer.alloc(192 << 20, 'b'));
      const { dir } = await branch('base', 'a');
      const copy = run('python3', ['-c', "f = open('big', 'r+b'); f.write(b'!')"], { cwd: dir });
      const others = run(
        'python3',
        ['-c', "import os\nfor i in range(300):\n  open('n%d' % i, 'w').write('x')\n  os.stat('f')"],
        {
          cwd: dir,
        },
      );
      const [copied, made] = await Promise.all([copy, others]);
      assert.equal(copied.status, 0, copied.err);
      assert.equal(made.status, 0, made.err);
      assert.equal(names(dir).length, 302);
      const fd = openSync(join(dir, 'big'), 'r');
      const start = Buffer.alloc(2);
      readSync(fd, start, 0, 2, 0);
      closeSync(fd);
      assert.equal(start.toString(), '!b');
    }),

  'a branch point is frozen on both sides': (scratch) =>
    store(scratch, { f: 'base', 'd/g': 'base' }, async ({ branch, at, server }) => {
      const parent = await branch('base', 'p');
      writeFileSync(join(parent.dir, 'f'), 'before');
      const fd = openSync(join(parent.dir, 'f'), 'r+');
      const child = await branch(parent.id, 'c');
      writeSync(fd, 'AFTER!', 0); // a file that was open across the point
      writeFileSync(join(parent.dir, 'd/g'), 'parent');
      writeFileSync(join(parent.dir, 'only-parent'), '');
      assert.equal(text(join(child.dir, 'f')), 'before');
      assert.equal(text(join(child.dir, 'd/g')), 'base');
      writeFileSync(join(child.dir, 'f'), 'child');
      unlinkSync(join(child.dir, 'd/g'));
      assert.equal(text(join(parent.dir, 'f')), 'AFTER!');
      assert.equal(text(join(parent.dir, 'd/g')), 'parent');
      assert.deepEqual(names(child.dir), ['d', 'f']);
      closeSync(fd);
      // A second child of the parent as it is now, made while the parent is written to.
      const writer = run(
        'python3',
        ['-c', "import os\nfor i in range(2000):\n  with open('n', 'w') as f: f.write('%d' % i)"],
        { cwd: parent.dir },
      );
      const made: string[] = [];
      for (let i = 0; i < 10; i++) {
        const { branches } = await server.client.request('branch.create', {
          parent: parent.id,
          count: 1,
          group: 'independent',
        });
        made.push(branches[0]?.id ?? '');
      }
      assert.equal((await writer).status, 0);
      for (const [i, id] of made.entries()) {
        const dir = at(`n${String(i)}`);
        mkdirSync(dir);
        await server.client.request('branch.mount', { branch: id, at: dir });
        const seen = existsSync(join(dir, 'n')) ? text(join(dir, 'n')) : '';
        await new Promise((resolve) => setTimeout(resolve, 5));
        assert.equal(existsSync(join(dir, 'n')) ? text(join(dir, 'n')) : '', seen);
      }
      assert.equal(text(join(parent.dir, 'n')), '1999');
    }),

  'twenty levels deep': (scratch) =>
    store(scratch, { f: '0' }, async ({ branch, server }) => {
      let parent = 'base';
      const dirs: string[] = [];
      for (let level = 0; level < 20; level++) {
        const { id, dir } = await branch(parent, `l${String(level)}`);
        writeFileSync(join(dir, `own${String(level)}`), String(level));
        writeFileSync(join(dir, 'f'), String(level));
        parent = id;
        dirs.push(dir);
      }
      for (const [level, dir] of dirs.entries()) {
        assert.equal(text(join(dir, 'f')), String(level));
        assert.equal(names(dir).length, level + 2);
      }
      for (let level = 19; level > 0; level--) {
        await server.client.request('branch.commit', { branch: parent });
        const { branches } = await server.client.request('branch.list', {});
        parent = branches.find((each) => each.id === parent)?.parent ?? '';
      }
      assert.equal(text(join(dirs[0] ?? '', 'f')), '19');
      assert.equal(names(dirs[0] ?? '').length, 21);
    }),

  'the base is read live: changes from outside show, also through the kernel cache': (scratch) =>
    store(scratch, { f: 'old', 'd/g': 'x', gone: 'x' }, async ({ base, branch }) => {
      const { dir } = await branch('base', 'a');
      assert.equal(text(join(dir, 'f')), 'old');
      assert.deepEqual(names(join(dir, 'd')), ['g']);
      assert.equal(existsSync(join(dir, 'later')), false);
      assert.equal(existsSync(join(dir, 'gone')), true);
      writeFileSync(join(base, 'f'), 'new and longer');
      writeFileSync(join(base, 'later'), 'l');
      writeFileSync(join(base, 'd/h'), 'y');
      unlinkSync(join(base, 'gone'));
      await until('new content', () => text(join(dir, 'f')) === 'new and longer');
      await until('new size', () => statSync(join(dir, 'f')).size === 14);
      await until('a new name', () => existsSync(join(dir, 'later')));
      await until('a removed name', () => !existsSync(join(dir, 'gone')));
      await until('a new listing', () => names(join(dir, 'd')).join() === 'g,h');
      // Saved by rename, as editors do.
      writeFileSync(join(base, '.f.tmp'), 'by rename');
      renameSync(join(base, '.f.tmp'), join(base, 'f'));
      await until('content that came by rename', () => text(join(dir, 'f')) === 'by rename');
      // What the branch changed is the branch's.
      writeFileSync(join(dir, 'f'), 'mine');
      writeFileSync(join(base, 'f'), 'theirs');
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(text(join(dir, 'f')), 'mine');
    }),

  'hidden paths are not there': (scratch) =>
    store(
      scratch,
      { f: 'x', '.env': 'secret', 'secrets/key': 'k', 'sub/.env': 'also' },
      async ({ base, branch, server }) => {
        const { id, dir } = await branch('base', 'a');
        assert.deepEqual(names(dir), ['f', 'sub']);
        fails('ENOENT', () => readFileSync(join(dir, '.env')));
        fails('ENOENT', () => readFileSync(join(dir, 'secrets/key')));
        fails('EACCES', () => {
          writeFileSync(join(dir, '.env'), 'mine');
        });
        fails('EACCES', () => mkdirSync(join(dir, 'secrets')));
        writeFileSync(join(dir, 'f'), 'y');
        await server.client.request('branch.commit', { branch: id });
        assert.equal(text(join(base, '.env')), 'secret');
        assert.equal(text(join(base, 'secrets/key')), 'k');
      },
      { hide: ['.env', 'secrets'] },
    ),

  'a base that holds the store and the mounts: neither is shown or entered': (scratch) =>
    store(
      scratch,
      { f: 'x' },
      async ({ base, branch }) => {
        const { dir } = await branch('base', 'a');
        const found = await run('find', [dir, '-name', 'log', '-o', '-name', 'objects'], { timeoutMs: 60_000 });
        assert.equal(found.out, '');
        assert.equal(found.status, 0, found.err);
        const inside = join(dir, 'state', 'mounts', 'a');
        assert.equal(existsSync(join(inside, 'f')), false);
        assert.equal(existsSync(join(dir, 'state', 'store', 'format')), false);
        writeFileSync(join(dir, 'f'), 'y');
        assert.equal(text(join(base, 'f')), 'x');
      },
      { inside: true },
    ),

  'an aborted branch gives its space back': (scratch) =>
    store(scratch, { f: 'x' }, async ({ branch, server }) => {
      const { id, dir } = await branch('base', 'a');
      const before = (await server.client.request('store.status', {})).bytes;
      writeFileSync(join(dir, 'big'), Buffer.alloc(32 << 20, 'b'));
      const full = (await server.client.request('store.status', {})).bytes;
      assert.ok(full - before >= 32 << 20, `${String(full)} after ${String(before)}`);
      await server.client.request('branch.abort', { branch: id });
      await until('the space is back', async () => {
        return (await server.client.request('store.status', {})).bytes < before + (1 << 20);
      });
      assert.equal(existsSync(join(dir, 'f')), false);
    }),

  'undo puts the base back to the byte': (scratch) =>
    store(scratch, { f: 'old', 'd/g': 'x', gone: 'was here' }, async ({ base, branch, server }) => {
      utimesSync(join(base, 'f'), OLD, OLD);
      const { id, dir } = await branch('base', 'a');
      writeFileSync(join(dir, 'f'), 'new');
      unlinkSync(join(dir, 'gone'));
      writeTree(dir, { 'fresh/h': 'h' });
      const { commit } = await server.client.request('branch.commit', { branch: id });
      assert.deepEqual(names(base), ['d', 'f', 'fresh']);
      await server.client.request('commit.undo', { commit });
      assert.deepEqual(names(base), ['d', 'f', 'gone']);
      assert.equal(text(join(base, 'f')), 'old');
      assert.equal(statSync(join(base, 'f')).mtimeMs, OLD.getTime());
      assert.equal(text(join(base, 'gone')), 'was here');
    }),
};

export async function traps(_server: Server, scratch: Scratch, checks: Checks): Promise<void> {
  const before = checks.passed;
  for (const [name, body] of Object.entries(list)) await checks.check(`[traps] ${name}`, () => body(scratch));
  console.log(`traps: ${String(checks.passed - before)} of ${String(Object.keys(list).length)} passed`);
}
