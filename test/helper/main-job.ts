// The main job through the daemon's socket: start, branch, run, look, commit, undo, discard; terminals; checks; two and more of
// everything at once.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HelperClient } from '../../helper/api/client.js';
import { quotedPath } from '../../helper/protocol/wire-path.js';
import { until, type Checks } from '../harness.js';
import { initialize } from './language-client.js';
import { branchNow, codeOf, ensure, equal, World } from './world.js';

export async function mainJob(checks: Checks): Promise<void> {
  await checks.check('start, run, diff, patch, commit, undo, discard', wholeJob);
  await checks.check('branches with hints: frozen files, own agents, the first commit wins', branching);
  await checks.check('a terminal outlives its client', terminals);
  await checks.check('commands: status, both streams, time limit, cancel, missing program', commands);
  await checks.check('checks are kept with the edits they belong to', runningChecks);
  await checks.check('two clients, one of them a language client that leaves', twoClients);
  await checks.check('two windows, three workspaces and two commits at once', manyAtOnce);
  await checks.check('a checkpoint holds an instant without a program', checkpoint);
}

async function wholeJob(): Promise<void> {
  const world = new World('job');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n', 'keep/b.txt': 'two\n', 'gone.txt': 'three\n' });
    const client = await world.client();
    const branch = await world.start(client, folder, 'echo agent > agent.txt; sleep 100000', { name: 'try' });
    equal(
      [branch.name, branch.person, branch.parent, branch.workspace],
      ['try', 'running', 'base', folder],
      'the branch',
    );
    ensure(branch.folder !== undefined && existsSync(join(branch.folder, 'a.txt')), 'its folder shows the files');
    await world.sh(
      client,
      branch,
      'echo more >> a.txt; rm gone.txt; mkdir empty; chmod 755 keep/b.txt; ln -s a.txt link',
    );
    await until('the agent has written', () => existsSync(join(branch.folder ?? '', 'agent.txt')));
    const { changes, total } = await client.request('bough/diff', { branch: branch.id });
    const kinds = changes.map(({ path, kind }) => `${kind} ${quotedPath(path)}`).sort();
    const expected = [
      'added agent.txt',
      'added empty',
      'added link',
      'deleted gone.txt',
      'modified a.txt',
      'modified keep/b.txt',
    ];
    equal([kinds, total], [expected, 6], 'the diff');
    equal((await branchNow(client, branch)).changes, 6, 'changes in the list');
    const { text } = await client.request('bough/patch', { branch: branch.id, paths: ['a.txt'] });
    ensure(text.includes('--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+more\n'), `the patch: ${text}`);
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\n', 'the real file before the commit');

    const result = await client.request('bough/commit', { branch: branch.id });
    equal([result.into, result.partial, result.notApplied.length], ['base', false, 0], 'the commit');
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\nmore\n', 'the real file after the commit');
    ensure(
      !existsSync(join(folder, 'gone.txt')) && existsSync(join(folder, 'empty')),
      'deletions and empty folders are committed',
    );
    equal(statSync(join(folder, 'keep/b.txt')).mode & 0o777, 0o755, 'the mode');
    const after = await branchNow(client, branch);
    equal([after.person, after.fileState], ['committed', 'committed'], 'the state after the commit');
    equal(world.leftovers().processes, [], 'programs of a committed branch');

    const undone = await client.request('bough/undo', { folder });
    equal(undone.commit, result.commit, 'what was undone');
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'one\n', 'the real file after the undo');
    ensure(existsSync(join(folder, 'gone.txt')) && !existsSync(join(folder, 'empty')), 'the undo is exact');

    equal((await client.request('bough/abort', { branch: branch.id })).branches, [branch.id], 'what is gone');
    equal((await client.request('bough/list', { folder })).branches, [], 'the list at the end');
    await world.nothingLeft();
    const { lines } = await client.request('bough/audit', { folder });
    const done = lines.map((line) => (JSON.parse(line) as { what: string; outcome: string }).what);
    equal(done, ['start', 'exec', 'commit', 'undo', 'abort'], 'the audit log');
  } finally {
    await world.end();
  }
}

async function branching(): Promise<void> {
  const world = new World('fork');
  try {
    const folder = world.workspace('ws', { 'plan.txt': 'plan\n' });
    const client = await world.client();
    const command = ['sh', '-c', 'echo "hint: {hint}" > hint.txt; sleep 100000'];
    const parent = await client.request('bough/start', { folder, agent: 'mine', command, hint: 'first' });
    await until('the parent has written', () => existsSync(join(parent.folder ?? '', 'hint.txt')));
    await world.sh(client, parent, 'echo untracked > note.txt; echo state > ~/state');
    const { branches, pauseUs } = await client.request('bough/branch', {
      branch: parent.id,
      count: 3,
      hints: ['left', 'right'],
    });
    ensure(pauseUs >= 0 && branches.length === 3, 'three children');
    equal(
      branches.map(({ hint, machine, agent, parent: of }) => [hint, machine, agent, of]),
      ['left', 'right', ''].map((hint) => [hint, 'process', 'mine', parent.id]),
      'the children',
    );
    const [left, right, third] = branches;
    if (!left || !right || !third) throw new Error('three children');
    const hintOf = (at: string | undefined) => readFileSync(join(at ?? '', 'hint.txt'), 'utf8');
    await until(
      'each child has its own hint',
      () => hintOf(left.folder) === 'hint: left\n' && hintOf(right.folder) === 'hint: right\n',
    );
    equal(hintOf(parent.folder), 'hint: first\n', 'the parent goes on undisturbed');
    equal(
      await world.sh(client, left, 'cat note.txt ~/state'),
      'untracked\nstate\n',
      'untracked files and HOME came along',
    );
    await world.sh(client, parent, 'echo later > later.txt; echo later > ~/state');
    equal(
      await world.sh(client, left, 'ls; cat ~/state'),
      'hint.txt\nnote.txt\nplan.txt\nstate\n',
      'the child does not see it',
    );
    await world.sh(client, left, 'echo left > both.txt');
    await world.sh(client, right, 'echo right > both.txt');
    equal((await branchNow(client, left)).overlaps, 2, 'both siblings touched both.txt and hint.txt');

    const { superseded } = await client.request('bough/commit', { branch: left.id, paths: ['both.txt'] });
    equal(superseded, [], 'a partial commit decides nothing');
    equal((await branchNow(client, left)).person, 'running', 'and its agent goes on');
    await client.request('bough/revert', { branch: left.id, paths: ['hint.txt'] });
    const result = await client.request('bough/commit', { branch: left.id });
    equal([...result.superseded].sort(), [right.id, third.id].sort(), 'the siblings are superseded');
    const states = (await client.request('bough/list', { folder })).branches.map(({ id, person }) => [id, person]);
    const expected = [
      [parent.id, 'running'],
      [left.id, 'committed'],
      [right.id, 'superseded'],
      [third.id, 'superseded'],
    ];
    equal([...states].sort(), [...expected].sort(), 'the states');
    equal(await world.sh(client, parent, 'cat both.txt'), 'left\n', 'the parent has what the winner made');
    equal(await codeOf(client.request('bough/commit', { branch: right.id })), 'E_STATE', 'a loser cannot be committed');
    equal(await world.sh(client, right, 'cat both.txt'), 'right\n', 'but it can be read');
    equal(
      (await client.request('bough/take', { branch: parent.id, from: right.id, paths: ['both.txt'] })).taken,
      1,
      'and picked from',
    );
    await client.request('bough/abort', { branch: parent.id, recursive: true });
    await world.nothingLeft();
  } finally {
    await world.end();
  }
}

async function terminals(): Promise<void> {
  const world = new World('term');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const first = await world.client();
    const branch = await first.request('bough/start', { folder, agent: 'shell', rows: 33, columns: 99 });
    const screen = collect(first, branch.id);
    await first.request('bough/terminal/open', { branch: branch.id, rows: 33, columns: 99 });
    await first.request('bough/terminal/input', { terminal: branch.id, data: 'stty size; echo un$((1+1))\n' });
    await until('the shell has answered', () => screen.text.includes('33 99') && screen.text.includes('un2'));
    await first.request('bough/terminal/resize', { terminal: branch.id, rows: 20, columns: 60 });
    await first.request('bough/terminal/input', { terminal: branch.id, data: 'stty size\n' });
    await until('the shell has the new size', () => screen.text.includes('20 60'));
    first.close();

    const second = await world.client();
    equal((await branchNow(second, branch)).person, 'running', 'the shell runs on');
    const other = collect(second, branch.id);
    const { replay, running } = await second.request('bough/terminal/open', {
      branch: branch.id,
      rows: 20,
      columns: 60,
    });
    ensure(running && replay.includes('un2'), 'the new client sees what was printed before');
    await second.request('bough/terminal/input', { terminal: branch.id, data: 'exit 3\n' });
    await until('the exit is told', () => other.exit !== undefined);
    equal(other.exit, 3, 'the exit status');
    await until('the branch has stopped', async () => (await branchNow(second, branch)).person === 'stopped');
    const ended = await second.request('bough/terminal/open', { branch: branch.id, rows: 20, columns: 60 });
    equal([ended.running, ended.exitCode, ended.replay.includes('un2')], [false, 3, true], 'an ended terminal');
    await second.request('bough/terminal/open', { branch: branch.id, rows: 20, columns: 60, shell: true });
    await second.request('bough/terminal/input', { terminal: branch.id, data: 'echo back$((1))\n' });
    await until('a new shell answers', () => other.text.includes('back1'));
    equal((await second.request('bough/stop', { branch: branch.id })).person, 'stopped', 'after the stop');
    equal(world.leftovers().processes, [], 'after the stop');
  } finally {
    await world.end();
  }
}

interface Screen {
  text: string;
  exit?: number | null;
}

function collect(client: HelperClient, terminal: string): Screen {
  const screen: Screen = { text: '' };
  client.on('bough/terminal/data', (params) => {
    if (params.terminal === terminal) screen.text += params.data;
  });
  client.on('bough/terminal/exit', (params) => {
    if (params.terminal === terminal) screen.exit = params.exitCode;
  });
  return screen;
}

async function commands(): Promise<void> {
  const world = new World('exec');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    const exec = (command: readonly string[], timeoutMs?: number) =>
      client.request('bough/exec', { branch: branch.id, command, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    equal(
      await exec(['sh', '-c', 'echo out; echo err >&2; exit 9']),
      { exitCode: 9, stdout: 'out\n', stderr: 'err\n' },
      'a command',
    );
    equal((await exec(['no-such-program'])).exitCode, 127, 'a missing program');
    equal((await exec(['sleep', '100000'], 300)).exitCode, 124, 'a time limit');
    const big = await exec(['sh', '-c', 'head -c 20000000 /dev/zero | tr "\\0" x; echo END']);
    ensure(big.stdout.endsWith('xEND\n') && big.stdout.length < 9_000_000, 'of a long output the end is kept');
    const abort = new AbortController();
    const cancelled = client.request(
      'bough/exec',
      { branch: branch.id, command: ['sh', '-c', 'echo > started; sleep 100000'] },
      { signal: abort.signal },
    );
    await until('the command runs', () => existsSync(join(branch.folder ?? '', 'started')));
    abort.abort();
    equal(await codeOf(cancelled), 'E_CANCELLED', 'a cancelled command');
    const other = await world.client();
    const lost = other.request('bough/exec', {
      branch: branch.id,
      command: ['sh', '-c', 'echo > again; sleep 100000'],
    });
    lost.catch(() => undefined);
    await until('the second command runs', () => existsSync(join(branch.folder ?? '', 'again')));
    other.close();
    await until('a command ends with its client', () => world.processes(/bwrap.*BOUGH_ROLE exec/).length === 0);
    equal(await codeOf(exec([])), 'E_BAD_REQUEST', 'no command');
    equal(
      await codeOf(client.request('bough/exec', { branch: 'nowhere.b1', command: ['true'] })),
      'E_NO_BRANCH',
      'no branch',
    );
  } finally {
    await world.end();
  }
}

async function runningChecks(): Promise<void> {
  const world = new World('checks');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    equal(await codeOf(client.request('bough/checks', { branch: branch.id })), 'E_NO_CHECKS', 'without a command');
    const failed = await client.request('bough/checks', { branch: branch.id, command: 'echo looking; grep two a.txt' });
    equal([failed.state, failed.exitCode, failed.output], ['failed', 1, 'looking\n'], 'a check that fails');
    await world.sh(client, branch, 'echo two >> a.txt');
    const between = await branchNow(client, branch);
    ensure(between.checks !== null && between.checks.edits !== between.edits, 'the result is known to be stale');
    const passed = await client.request('bough/checks', { branch: branch.id });
    equal([passed.state, passed.command], ['passed', 'echo looking; grep two a.txt'], 'the same check again');
    const abort = new AbortController();
    const begun = join(branch.folder ?? '', 'begun');
    const running = client.request(
      'bough/checks',
      { branch: branch.id, command: 'echo > begun; sleep 100000' },
      { signal: abort.signal },
    );
    await until(
      'the check runs',
      async () => existsSync(begun) && (await branchNow(client, branch)).checks?.state === 'running',
    );
    equal(await codeOf(client.request('bough/checks', { branch: branch.id })), 'E_STATE', 'a second one at once');
    abort.abort();
    equal((await running.catch(() => null))?.state ?? 'cancelled', 'cancelled', 'a cancelled check');
    await until('it is noted', async () => (await branchNow(client, branch)).checks?.state === 'cancelled');
  } finally {
    await world.end();
  }
}

async function twoClients(): Promise<void> {
  const world = new World('two');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    // Both may find no helper and start one: one daemon is left.
    const [one, two] = await Promise.all([world.client(), world.client()]);
    equal(one.pid, two.pid, 'one helper');
    let told = 0;
    two.on('bough/changed', (params) => {
      if (params.folder === folder) told++;
    });
    await two.request('bough/open', { folder });
    const branch = await world.start(one, folder);
    await until('the other client is told', () => told > 0);
    equal((await branchNow(two, branch)).id, branch.id, 'and sees the branch');
    const before = told;
    await world.sh(one, branch, 'echo more >> a.txt');
    await until('the other client is told of an edit', () => told > before);
    const renamed = await two.request('bough/rename', { branch: branch.id, name: 'other name' });
    equal([(await branchNow(one, branch)).name, renamed.name], ['other name', 'other name'], 'the new name');

    const language = await initialize(world.env);
    equal(language.server, 'bough-helper', 'LSP initialize');
    const slow = { branch: branch.id, command: 'sleep 100000' };
    const { title, result } = await language.cancelInProgress('bough/checks', slow);
    equal(
      [title, (result as { state: string }).state],
      ['Running the checks', 'cancelled'],
      'progress with a Cancel button',
    );
    await language.leave();
    equal((await branchNow(one, branch)).person, 'running', 'the helper goes on after exit of one client');
    equal(
      await codeOf(one.request('bough/start', { folder: 'relative', agent: 'shell' })),
      'E_BAD_FOLDER',
      'a relative folder',
    );
    equal(await codeOf(one.request('bough/start', { folder, agent: 'nobody' })), 'E_NO_AGENT', 'an unknown agent');
    equal(
      await codeOf(one.request('bough/start', { folder, agent: 'shell', machine: 'microvm' })),
      'E_NO_MICROVM',
      'no microVM',
    );
    equal(
      await codeOf(one.request('bough/start', { folder: branch.folder ?? '', agent: 'shell' })),
      'E_IS_BRANCH',
      'a branch of a mount',
    );
  } finally {
    await world.end();
  }
}

async function manyAtOnce(): Promise<void> {
  const world = new World('many');
  try {
    const client = await world.client();
    const other = await world.client();
    const window = (index: number) => (index % 2 === 0 ? client : other);
    const folders = ['a', 'b', 'c'].map((name) => world.workspace(name, { 'f.txt': `${name}\n` }));
    const branches = await Promise.all(folders.map((folder, index) => world.start(window(index), folder)));
    equal(new Set(branches.map(({ id }) => id)).size, 3, 'ids are unique over workspaces');
    equal(world.boughfs().length, 3, 'one file server per workspace');
    await Promise.all(branches.map((branch, index) => world.sh(window(index + 1), branch, `echo ${index} >> f.txt`)));
    const [first] = branches;
    if (!first) throw new Error('a branch');
    const second = await world.start(client, first.workspace);
    await world.sh(client, second, 'echo other > g.txt');
    const commits = await Promise.all(
      [...branches, second].map(({ id }, index) => window(index).request('bough/commit', { branch: id })),
    );
    equal(
      commits.map(({ into }) => into),
      ['base', 'base', 'base', 'base'],
      'all commits',
    );
    equal(
      folders.map((folder) => readFileSync(join(folder, 'f.txt'), 'utf8')),
      ['a\n0\n', 'b\n1\n', 'c\n2\n'],
      'each in its own folder',
    );
    equal(readFileSync(join(first.workspace, 'g.txt'), 'utf8'), 'other\n', 'disjoint siblings both commit');
    const third = await world.start(client, first.workspace);
    await world.sh(client, third, 'echo once >> f.txt');
    const twice = await Promise.allSettled(
      [0, 1].map((index) => window(index).request('bough/commit', { branch: third.id })),
    );
    equal(twice.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'the same commit twice at once');
    const again = await world.start(client, first.workspace);
    await world.sh(client, again, 'echo operation >> f.txt');
    const same = await Promise.all(
      [0, 1].map((index) => window(index).request('bough/commit', { branch: again.id, operation: 'op-1' })),
    );
    equal(same[0]?.commit, same[1]?.commit, 'under one operation id it is one commit');
    const { workspaces } = await client.request('bough/workspaces', {});
    equal(
      workspaces.map(({ folder, problem }) => [folder, problem]).sort(),
      folders.map((folder) => [folder, null]).sort(),
      'the workspaces',
    );
  } finally {
    await world.end();
  }
}

async function checkpoint(): Promise<void> {
  const world = new World('point');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const parent = await world.start(client, folder, 'echo "agent {hint}" >> log.txt; sleep 100000');
    await until('the agent has written', () => existsSync(join(parent.folder ?? '', 'log.txt')));
    const { branches } = await client.request('bough/branch', { branch: parent.id, count: 1, agent: 'none' });
    const point = branches[0];
    if (!point) throw new Error('a checkpoint');
    equal([point.person, point.exitCode, point.note], ['stopped', null, null], 'the checkpoint');
    writeFileSync(join(parent.folder ?? '', 'a.txt'), 'later\n');
    const { branches: revived } = await client.request('bough/branch', { branch: point.id, count: 1 });
    const again = revived[0];
    if (!again) throw new Error('a child of the checkpoint');
    equal([again.agent, again.person], ['test', 'running'], 'it has the agent of the branch before');
    equal(readFileSync(join(again.folder ?? '', 'a.txt'), 'utf8'), 'one\n', 'and the files of that instant');
  } finally {
    await world.end();
  }
}
