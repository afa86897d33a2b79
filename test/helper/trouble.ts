// Bad surroundings: a folder that cannot be written, goes away or is edited during the commit; a disk that is full; a store on a
// file system without extended attributes; no FUSE. Each is a clear error or just works, and nothing is lost.
import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { HelperClient } from '../../helper/api/client.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { pause, run, until, type Checks } from '../harness.js';
import { branchNow, codeOf, ensure, equal, helperProgram, World } from './world.js';

export async function trouble(checks: Checks): Promise<void> {
  await checks.check('the folder is deleted under a live branch', removedBase);
  await checks.check('the person saves the same file while it is committed', savedMeanwhile);
  const cannot = await whyNoMounts();
  const withMounts: readonly (readonly [string, () => Promise<void>])[] = [
    ['a folder that is mounted read-only', readOnlyBase],
    ['an immutable file in the folder', immutableFile],
    ['the folder is unmounted under a live branch', unmountedBase],
    ['a full disk under the store and the helper’s own state', fullDisk],
    ['a store on a file system without extended attributes', withoutXattrs],
    ['no FUSE', withoutFuse],
  ];
  for (const [name, body] of withMounts) {
    if (cannot === undefined) await checks.check(name, body);
    else checks.skip(name, cannot);
  }
}

/** These cases need file systems of their own. */
async function whyNoMounts(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root may mount';
  const { status } = await run('unshare', ['--mount', 'true']);
  return status === 0 ? undefined : 'this container may not mount';
}

function mount(...args: string[]): void {
  execFileSync('mount', args);
}

/** What failed must say what to do, and leave the folder and the branch as they were. */
async function refused(client: HelperClient, branch: Branch, code: string): Promise<void> {
  const request = client.request('bough/commit', { branch: branch.id });
  equal(await codeOf(request), code, 'the commit');
  const now = await branchNow(client, branch);
  equal([now.fileState, now.person], ['live', 'running'], 'the branch goes on');
}

async function readOnlyBase(): Promise<void> {
  const world = new World('ro');
  try {
    const real = world.workspace('real', { 'a.txt': 'one\n', 'b.txt': 'one\n' });
    const folder = world.workspace('ws', {});
    mount('--bind', real, folder);
    mount('-o', 'remount,bind,ro', folder);
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'echo two >> a.txt; rm b.txt; mkdir new; echo three > new/c.txt');
    await refused(client, branch, 'E_READ_ONLY');
    equal(readFileSync(join(real, 'a.txt'), 'utf8'), 'one\n', 'the folder');
    equal(await world.sh(client, branch, 'cat a.txt; ls'), 'one\ntwo\na.txt\nnew\n', 'the work');
    mount('-o', 'remount,bind,rw', folder);
    await client.request('bough/commit', { branch: branch.id });
    equal(readFileSync(join(real, 'new', 'c.txt'), 'utf8'), 'three\n', 'committed once it may be written');
  } finally {
    await world.end();
  }
}

async function immutableFile(): Promise<void> {
  const world = new World('fixed');
  const folder = world.workspace('ws', { 'a.txt': 'one\n', 'fixed.txt': 'one\n', 'sub/in.txt': 'one\n' });
  const fixed = [join(folder, 'fixed.txt'), join(folder, 'sub')];
  try {
    execFileSync('chattr', ['+i', ...fixed]);
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'for f in a.txt fixed.txt sub/in.txt; do echo two >> $f; done');
    const request = client.request('bough/commit', { branch: branch.id });
    equal(await codeOf(request), 'E_READ_ONLY', 'the commit');
    await request.catch((error: unknown) => {
      ensure(/fixed\.txt|sub/.test(String(error)), `it names the path: ${String(error)}`);
    });
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\n', 'what could have been written was not');
    await client.request('bough/commit', { branch: branch.id, paths: ['a.txt'] });
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\ntwo\n', 'a part that may be written');
    execFileSync('chattr', ['-i', ...fixed]);
    await client.request('bough/commit', { branch: branch.id });
    equal(readFileSync(join(folder, 'sub', 'in.txt'), 'utf8'), 'one\ntwo\n', 'the rest once it may be written');
  } finally {
    await run('chattr', ['-i', ...fixed]);
    await world.end();
  }
}

async function unmountedBase(): Promise<void> {
  const world = new World('umount');
  try {
    const real = world.workspace('real', { 'a.txt': 'one\n' });
    const folder = world.workspace('ws', {});
    mount('--bind', real, folder);
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'echo two >> a.txt; sync a.txt');
    execFileSync('umount', ['-l', folder]);
    await refused(client, branch, 'E_BASE_GONE');
    equal(readFileSync(join(real, 'a.txt'), 'utf8'), 'one\n', 'the folder');
    ensure(!existsSync(join(folder, 'a.txt')), 'nothing was written below the mount point');
    mount('--bind', real, folder);
    await client.request('bough/commit', { branch: branch.id });
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\ntwo\n', 'committed once it is back');
  } finally {
    await world.end();
  }
}

async function removedBase(): Promise<void> {
  const world = new World('removed');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n', 'b.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'echo two >> a.txt; echo new > new.txt; sync a.txt new.txt');
    rmSync(folder, { recursive: true });
    await refused(client, branch, 'E_BASE_GONE');
    const at = branch.folder ?? '';
    equal(readFileSync(join(at, 'a.txt'), 'utf8'), 'one\ntwo\n', 'a changed file is still there to be saved');
    equal(readFileSync(join(at, 'new.txt'), 'utf8'), 'new\n', 'a new file is still there to be saved');
    // Another folder of the same name is not the one that was branched.
    mkdirSync(folder);
    equal(await codeOf(client.request('bough/commit', { branch: branch.id })), 'E_BASE_GONE', 'into another folder');
    ensure(!existsSync(join(folder, 'a.txt')), 'nothing was written into it');
    await client.request('bough/abort', { branch: branch.id });
    await world.nothingLeft();
  } finally {
    await world.end();
  }
}

const SAVES = 20;

/** Whatever the commit does, merge or refuse, what was saved last is in the file, and the branch's line comes in as well. */
async function savedMeanwhile(): Promise<void> {
  const world = new World('saved');
  try {
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index}\n`).join('');
    const folder = world.workspace('ws', { 'a.txt': lines });
    const file = join(folder, 'a.txt');
    const client = await world.client();
    let saves = 0;
    const save = () => {
      const text = readFileSync(file, 'utf8').replace(/^(line|person) 25.*$/m, `person 25 ${++saves}`);
      // In place, or by a new file that takes the name: editors do either.
      if (saves % 2 === 0) writeFileSync(file, text);
      else {
        writeFileSync(`${file}~`, text);
        renameSync(`${file}~`, file);
      }
    };
    let refusals = 0;
    for (let round = 0; round < SAVES; round++) {
      const branch = await client.request('bough/start', { folder, agent: 'none' });
      const mine = join(branch.folder ?? '', 'a.txt');
      writeFileSync(mine, readFileSync(mine, 'utf8').replace(/^(line|branch) 3( .*)?$/m, `branch 3 ${round}`));
      const progress = { done: false };
      const commit = committed(client, branch).then((tries) => {
        progress.done = true;
        refusals += tries - 1;
      });
      while (!progress.done && saves < 20 * (round + 1)) {
        save();
        await pause(10 + (round % 7) * 5);
      }
      await commit;
      const now = readFileSync(file, 'utf8');
      ensure(now.includes(`person 25 ${saves}\n`), `round ${round}: the last save (${saves}) is lost:\n${now}`);
      await client.request('bough/abort', { branch: branch.id });
    }
    console.log(`       ${saves} saves during ${SAVES} commits, of which ${refusals} were refused and tried again`);
  } finally {
    await world.end();
  }
}

/** Commits as a person would: again when it was refused. How many tries it took. */
async function committed(client: HelperClient, branch: Branch): Promise<number> {
  for (let tries = 1; ; tries++) {
    const code = await client.request('bough/commit', { branch: branch.id }).then(
      () => null,
      (error: unknown) => codeOf(Promise.reject(error as Error)),
    );
    if (code === null) return tries;
    if (code !== 'E_CONFLICT' || tries > 50) throw new Error(`try ${tries}: ${code}`);
  }
}

async function fullDisk(): Promise<void> {
  const world = new World('full');
  try {
    mount('-t', 'tmpfs', '-o', 'size=24m,mode=700', 'tmpfs', world.scratch.folder('state'));
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    const waste = await world.start(client, folder);
    await world.sh(client, branch, 'echo two >> a.txt; echo work > work.txt; sync a.txt work.txt');
    const fill = 'dd if=/dev/zero of=waste bs=64k 2>&1; for n in 1 2 3 4 5 6 7 8; do echo more >> rest; done; true';
    ensure((await world.sh(client, waste, fill)).includes('No space left'), 'the disk is full');
    equal(await world.sh(client, branch, 'cat a.txt work.txt'), 'one\ntwo\nwork\n', 'what was written is there');

    // No room for new state: what is refused says so, and what needs none works.
    const opened = await client.request('bough/open', { folder });
    equal([opened.problem, opened.branches.length], [null, 2], 'the workspace');
    const start = client.request('bough/start', { folder, agent: 'none' });
    const code = await start.then(
      () => 'started',
      (error: unknown) => codeOf(Promise.reject(error as Error)),
    );
    ensure(code === 'started' || code === 'E_NO_SPACE', `a start without room: ${code}`);
    await world.killHelper(client);
    const again = await world.client();
    equal((await branchNow(again, branch)).fileState, 'live', 'after a restart of the helper');
    equal(readFileSync(join(branch.folder ?? '', 'work.txt'), 'utf8'), 'work\n', 'its work');
    await again.request('bough/abort', { branch: waste.id });
    // What an abort gives back comes in the background.
    await until('there is room again', () => {
      const { bavail, bsize } = statfsSync(world.scratch.folder('state'));
      return bavail * bsize > 8 * 1024 * 1024;
    });
    await again.request('bough/commit', { branch: branch.id });
    equal(readFileSync(join(folder, 'work.txt'), 'utf8'), 'work\n', 'committed once there is room');
  } finally {
    await world.end();
  }
}

async function withoutXattrs(): Promise<void> {
  const world = new World('noxattr');
  try {
    mount('-t', 'ramfs', '-o', 'mode=700', 'ramfs', world.scratch.folder('state'));
    const probe = join(world.scratch.folder('state'), 'probe');
    writeFileSync(probe, '');
    ensure(
      (await run('setfattr', ['-n', 'user.x', '-v', '1', probe])).status !== 0,
      'that file system has no attributes',
    );
    rmSync(probe);
    const folder = world.workspace('ws', { 'a.txt': 'one\n', 'gone.txt': 'one\n' });
    execFileSync('setfattr', ['-n', 'user.base', '-v', 'from the base', join(folder, 'a.txt')]);
    const client = await world.client();
    const branch = await world.start(client, folder);
    const at = branch.folder ?? '';
    await world.sh(client, branch, 'echo two >> a.txt; rm gone.txt; chmod 4711 a.txt; ln -s a.txt link; mkdir empty');
    execFileSync('setfattr', ['-n', 'user.branch', '-v', 'from the branch', join(at, 'a.txt')]);
    const { branches } = await client.request('bough/branch', { branch: branch.id, count: 1 });
    const child = branches[0]?.folder ?? '';
    const attributes = (file: string) =>
      execFileSync('getfattr', ['-d', '--absolute-names', file], { encoding: 'utf8' })
        .split('\n')
        .filter((line) => line.startsWith('user.'))
        .sort();
    const both = ['user.base="from the base"', 'user.branch="from the branch"'];
    equal(attributes(join(child, 'a.txt')), both, 'attributes in a child');
    for (const pid of world.boughfs()) process.kill(pid, 'SIGKILL');
    await until('the file server is back', async () =>
      existsSync(join((await branchNow(client, branch)).folder ?? '', 'link')),
    );
    equal(attributes(join(at, 'a.txt')), both, 'attributes after a crash');
    const { notApplied } = await client.request('bough/commit', { branch: branch.id });
    equal(notApplied, [], 'all of it was committed');
    equal(attributes(join(folder, 'a.txt')), both, 'attributes in the folder');
    equal(statSync(join(folder, 'a.txt')).mode & 0o7777, 0o4711, 'the mode');
    await client.request('bough/undo', { folder });
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\n', 'the file after the undo');
    ensure(existsSync(join(folder, 'gone.txt')), 'the undo');
  } finally {
    await world.end();
  }
}

/** A mount namespace in which /dev/fuse is a device that the kernel does not know, as in a container without it. */
async function withoutFuse(): Promise<void> {
  const world = new World('nofuse');
  const inside = join(world.scratch.path, 'fuse');
  try {
    execFileSync('mknod', [inside, 'c', '10', '255']);
    chmodSync(inside, 0o666);
    const line = `mount --bind ${inside} /dev/fuse && exec ${process.execPath} ${helperProgram}`;
    const helper = spawn('unshare', ['--mount', 'sh', '-c', line], { env: world.env, stdio: 'ignore' });
    await until(
      'the helper listens',
      () => helper.exitCode !== null || existsSync(join(world.scratch.path, 'run/bough/helper.sock')),
    );
    const client = await world.client();
    equal(client.pid, helper.pid, 'the helper without FUSE');
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const start = client.request('bough/start', { folder, agent: 'shell' });
    equal(await codeOf(start), 'E_NO_FUSE', 'a start');
    await start.catch((error: unknown) => {
      const { fix } = (error as { detail: { fix: string } }).detail;
      ensure(fix.includes('modprobe fuse'), `the fix: ${fix}`);
    });
    equal((await client.request('bough/list', { folder })).branches, [], 'nothing is half made');
    const { checks } = await client.request('bough/doctor', { folder });
    const fuse = checks.find(({ id }) => id === 'fuse');
    equal(fuse?.status, 'fail', 'the doctor');
    ensure(fuse?.fix.includes('/dev/fuse') === true, `its fix: ${fuse?.fix ?? ''}`);
    appendFileSync(join(folder, 'a.txt'), 'the person goes on\n');
  } finally {
    await world.end();
  }
}
