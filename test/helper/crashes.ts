// SIGKILL to the helper and to boughfs at many moments: nothing is lost, nothing is left over, and what no longer runs says so.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type HelperClient } from '../../helper/api/client.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { mountsBelow, pause, until, type Checks } from '../harness.js';
import { branchNow, codeOf, ensure, equal, helperProgram, World } from './world.js';

export async function crashes(checks: Checks): Promise<void> {
  await checks.check('the helper killed while an agent works', killedAtWork);
  await checks.check('the helper killed at many moments of start, branch, commit and abort', killedAtMoments);
  await checks.check('an agent that outlives the helper is taken up again', outliving);
  await checks.check('boughfs killed: mounts come back, agents are told stopped', killedFileServer);
  await checks.check('both killed: everything comes back', killedBoth);
  await checks.check('the workspace’s folder goes away and comes back', vanishingBase);
  await checks.check('what nobody serves or owns any more is removed, and nothing else', leftBehind);
  await checks.check('shutdown ends everything, the next start has the branches again', shutdown);
  await checks.check('an idle helper ends when it was asked to', idleExit);
}

async function killedAtWork(): Promise<void> {
  const world = new World('kill');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const first = await world.client();
    const branch = await world.start(first, folder, 'echo "from the agent"; echo > started; sleep 100000');
    await until('the agent works', () => existsSync(join(branch.folder ?? '', 'started')));
    await world.sh(first, branch, 'echo more >> a.txt');
    const running = first.request('bough/exec', {
      branch: branch.id,
      command: ['sh', '-c', 'echo > running; sleep 100000'],
    });
    running.catch(() => undefined);
    await until('a command runs', () => existsSync(join(branch.folder ?? '', 'running')));
    await pause(100); // The transcript is written within 50 ms; more only makes this check weaker, never fail.
    await world.killHelper(first);
    equal(await codeOf(running), 'E_HELPER_GONE', 'the request that waited');
    equal(
      readFileSync(join(branch.folder ?? '', 'a.txt'), 'utf8'),
      'one\nmore\n',
      'the mount goes on without the helper',
    );

    const second = await world.client();
    const now = await branchNow(second, branch);
    equal([now.person, now.exitCode, now.changes], ['stopped', null, 3], 'the branch after the restart');
    ensure(now.note?.includes('helper ended') === true, `why: ${now.note}`);
    await until('the command that has nobody has ended', () => world.leftovers().processes.length === 0);
    const { replay } = await second.request('bough/terminal/open', { branch: branch.id, rows: 24, columns: 80 });
    ensure(replay.includes('from the agent'), 'the transcript is there');
    await second.request('bough/commit', { branch: branch.id });
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\nmore\n', 'the work of before the crash is committed');
  } finally {
    await world.end();
  }
}

/** What is asked when the helper is killed, and what must be true of the workspace whenever it was. */
async function killedAtMoments(): Promise<void> {
  const world = new World('steps');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    let client = await world.client();
    const parent = await world.start(client, folder);
    await world.sh(client, parent, 'echo parent > p.txt');
    const actions: readonly ((client: HelperClient, victim: Branch) => Promise<unknown>)[] = [
      (at) => world.start(at, folder),
      (at) => at.request('bough/branch', { branch: parent.id, count: 3 }),
      (at, victim) => at.request('bough/commit', { branch: victim.id }),
      (at, victim) => at.request('bough/abort', { branch: victim.id }),
    ];
    let commits = 0;
    for (const [index, action] of actions.entries()) {
      for (const delay of [0, 3, 12, 40, 120]) {
        const victim = await world.start(client, folder);
        const name = `work-${index}-${delay}.txt`;
        await world.sh(client, victim, `echo ${delay} > ${name}`);
        const done = action(client, victim).then(
          () => true,
          () => false,
        );
        await pause(delay);
        await world.killHelper(client);
        const answered = await done;
        client = await world.client();
        let opened = await client.request('bough/open', { folder });
        const now = () => opened.branches.find(({ id }) => id === victim.id);
        const inBase = () => existsSync(join(folder, name));
        const inBranch = () => existsSync(join(now()?.folder ?? '/nowhere', name));
        const aborting = index === 3;
        // What the file server had begun may end, and an agent that lost its terminal may die, a moment later.
        await until('nothing is under way', async () => {
          opened = await client.request('bough/open', { folder });
          const others = opened.branches.filter(({ id }) => id !== parent.id);
          const settled = others.every(({ person }) => person === 'stopped' || person === 'committed');
          return settled && (now()?.fileState === 'committed') === inBase();
        }).catch(() => {
          throw new Error(`action ${index}, ${delay} ms: ${JSON.stringify(opened.branches)}`);
        });
        // Work is where it was, or where it was to go; only an abort may end it.
        ensure(aborting ? !inBase() : inBase() || inBranch(), `work is lost: ${name}`);
        if (index === 2) {
          if (answered) ensure(inBase(), 'a commit that was answered is there');
          if (inBase()) commits++;
          equal(opened.commits.length, commits, 'commits');
        }
        if (aborting && answered) equal(now(), undefined, 'an abort that was answered is done');
        equal(await world.sh(client, parent, 'cat p.txt'), 'parent\n', 'the parent');
        for (const { id, parent: of } of opened.branches) {
          if (id !== parent.id && (of === 'base' || of === parent.id))
            await client.request('bough/abort', { branch: id });
        }
        equal((await client.request('bough/list', { folder })).branches.length, 1, 'branches in the end');
        // A program that was only just being started when the helper was killed is found a few seconds later.
        await until('one mount, its folders and no program are left', () => {
          const { mounts, processes, folders } = world.leftovers();
          return mounts.length === 1 && processes.length === 0 && folders.length === 2;
        });
      }
    }
    await client.request('bough/abort', { branch: parent.id });
    await world.nothingLeft();
    equal(await client.request('bough/gc', {}), { mounts: 0, processes: 0, files: 0 }, 'nothing for gc to do');
  } finally {
    await world.end();
  }
}

async function outliving(): Promise<void> {
  const world = new World('outlive');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const first = await world.client();
    const script = 'trap "" HUP TERM; n=0; while :; do n=$((n+1)); echo $n > count.txt; sleep 0.1; done';
    const branch = await world.start(first, folder, script);
    const count = () => readFileSync(join(branch.folder ?? '', 'count.txt'), 'utf8');
    await until('the agent counts', () => existsSync(join(branch.folder ?? '', 'count.txt')));
    await world.killHelper(first);
    const second = await world.client();
    equal((await branchNow(second, branch)).person, 'running', 'the agent that ignores hang-ups');
    const before = count();
    await until('it still counts', () => count() !== before && count() !== '');
    equal((await second.request('bough/stop', { branch: branch.id })).person, 'stopped', 'it can be stopped');
    equal(world.leftovers().processes, [], 'after the stop');
  } finally {
    await world.end();
  }
}

async function killedFileServer(): Promise<void> {
  const world = new World('fskill');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'echo more >> a.txt; sync a.txt');
    for (let round = 0; round < 3; round++) {
      const [pid] = world.boughfs();
      if (pid === undefined) throw new Error('no boughfs runs');
      process.kill(pid, 'SIGKILL');
      await until('another one runs', () => world.boughfs().some((other) => other !== pid));
      await until('the mount is back', async () => {
        const now = await branchNow(client, branch).catch(() => null);
        return (
          now?.folder !== undefined &&
          mountsBelow(world.scratch.path).length === 1 &&
          isReadable(join(now.folder, 'a.txt'))
        );
      });
      equal(readFileSync(join(branch.folder ?? '', 'a.txt'), 'utf8'), 'one\nmore\n', 'the file');
      await until('the agent is told stopped', async () => (await branchNow(client, branch)).person === 'stopped');
      const now = await branchNow(client, branch);
      if (round === 0) ensure(now.note?.includes('file server') === true, `why: ${now.note}`);
      equal(await world.sh(client, branch, 'cat a.txt'), 'one\nmore\n', 'a command in the branch');
    }
    await client.request('bough/commit', { branch: branch.id });
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\nmore\n', 'the commit');
    await client.request('bough/abort', { branch: branch.id });
    await world.nothingLeft();
  } finally {
    await world.end();
  }
}

function isReadable(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

async function killedBoth(): Promise<void> {
  const world = new World('both');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const first = await world.client();
    const branch = await world.start(first, folder);
    const { branches } = await first.request('bough/branch', { branch: branch.id, count: 2 });
    await world.sh(first, branch, 'echo more >> a.txt; sync a.txt');
    for (const pid of world.boughfs()) process.kill(pid, 'SIGKILL');
    await world.killHelper(first);
    const second = await world.client();
    const opened = await second.request('bough/open', { folder });
    equal(opened.problem, null, 'the workspace');
    equal(
      opened.branches.map(({ id, person }) => [id, person]).sort(),
      [branch, ...branches].map(({ id }) => [id, 'stopped']).sort(),
      'its branches',
    );
    for (const each of opened.branches)
      ensure(isReadable(join(each.folder ?? '', 'a.txt')), `the mount of ${each.name}`);
    equal(await world.sh(second, branch, 'cat a.txt'), 'one\nmore\n', 'the work');
    equal(world.leftovers().processes, [], 'programs of before');
    await second.request('bough/abort', { branch: branch.id, recursive: true });
    await world.nothingLeft();
  } finally {
    await world.end();
  }
}

async function vanishingBase(): Promise<void> {
  const world = new World('gone');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'echo kept > kept.txt; sync kept.txt');
    await client.request('bough/shutdown', {});
    await client.closed;
    renameSync(folder, `${folder}-away`);
    const without = await world.client();
    equal(await codeOf(without.request('bough/list', { folder })), 'E_BASE_GONE', 'a list of it');
    const { workspaces } = await without.request('bough/workspaces', {});
    equal(
      workspaces.map(({ folder: at, problem }) => [at, problem?.code]),
      [[folder, 'E_BASE_GONE']],
      'the workspaces',
    );
    renameSync(`${folder}-away`, folder);
    await until('it is served again', async () => (await without.request('bough/open', { folder })).problem === null);
    equal(await world.sh(without, branch, 'cat kept.txt'), 'kept\n', 'the work');
  } finally {
    await world.end();
  }
}

async function leftBehind(): Promise<void> {
  const world = new World('left');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const other = world.workspace('other', { 'a.txt': 'other\n' });
    const first = await world.client();
    const branch = await world.start(first, folder);
    const keeps = await world.start(first, other);
    await world.sh(first, branch, 'echo kept > kept.txt; sync kept.txt');
    const [server] = world.processes(new RegExp(`boughfs --store ${world.store(folder).store}`));
    if (!server) throw new Error('no boughfs runs');
    // The helper first: it would start the file server again.
    await world.killHelper(first);
    process.kill(server.pid, 'SIGKILL');
    await until('the file server has ended', () => world.boughfs().length === 1);
    // Its mount is dead now, and without its folder nobody can serve it again.
    renameSync(folder, `${folder}-away`);
    equal(world.leftovers().mounts.length, 2, 'a dead mount and one that is served');
    mkdirSync(join(world.store(other).branches, 'bnobody', 'home'), { recursive: true });

    const second = await world.client();
    await until('the dead mount is detached', () => world.leftovers().mounts.length === 1);
    equal(await world.sh(second, keeps, 'cat a.txt'), 'other\n', 'the other workspace is served');
    ensure(!existsSync(join(world.store(other).branches, 'bnobody')), 'a folder without a branch is gone');
    mkdirSync(join(world.store(other).branches, 'bnobody', 'home'), { recursive: true });
    equal(await second.request('bough/gc', {}), { mounts: 0, processes: 0, files: 1 }, 'what gc found');
    equal(await second.request('bough/gc', {}), { mounts: 0, processes: 0, files: 0 }, 'what it found then');

    renameSync(`${folder}-away`, folder);
    await until(
      'the folder is served again',
      async () => (await second.request('bough/open', { folder })).problem === null,
    );
    equal(await world.sh(second, branch, 'cat kept.txt'), 'kept\n', 'the work in it');
  } finally {
    await world.end();
  }
}

async function shutdown(): Promise<void> {
  const world = new World('down');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    writeFileSync(join(branch.folder ?? '', 'b.txt'), 'two\n');
    await client.request('bough/shutdown', {});
    await client.closed;
    await until('everything has ended', () => world.processes(/helper\.js|boughfs --store|bwrap/).length === 0);
    equal(world.leftovers().mounts, [], 'mounts');
    const again = await world.client();
    const now = await branchNow(again, branch);
    equal([now.person, now.note], ['stopped', 'Stopped with the helper.'], 'the branch');
    equal(readFileSync(join(now.folder ?? '', 'b.txt'), 'utf8'), 'two\n', 'its work');
  } finally {
    await world.end();
  }
}

async function idleExit(): Promise<void> {
  const world = new World('idle');
  try {
    const child = spawn(process.execPath, [helperProgram, '--idle-exit=3'], { env: world.env, stdio: 'ignore' });
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    await until('the helper listens', async () => {
      const found = await connect({ env: world.env, start: false }).catch(() => null);
      found?.close();
      return found !== null;
    });
    const client = await world.client();
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const branch = await world.start(client, folder);
    equal(client.pid, child.pid, 'the helper that was started');
    client.close();
    await pause(4500); // An agent runs: it must not end, however long nobody is connected.
    equal(child.exitCode, null, 'with an agent that runs');
    const again = await world.client();
    await again.request('bough/stop', { branch: branch.id });
    again.close();
    equal(await ended, 0, 'once nothing runs');
    await until('the file server has ended, too', () => world.boughfs().length === 0);
  } finally {
    await world.end();
  }
}
