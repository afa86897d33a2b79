// An agent reaches its branch and nothing else: not the helper, not the person's secrets, not other branches, not the network; and
// its end is the end of everything it started.
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { places } from '../../helper/state/places.js';
import { until, type Checks } from '../harness.js';
import { codeOf, ensure, equal, World } from './world.js';

export async function isolation(checks: Checks): Promise<void> {
  await checks.check('what an agent cannot reach', outOfReach);
  await checks.check('the person’s home as the workspace: the store and secrets do not show', homeAsWorkspace);
  await checks.check('an abort ends everything, whatever ignores signals', abortEndsAll);
  await checks.check('without bubblewrap and without boughfs: an error that says what to do', missingPrograms);
}

async function outOfReach(): Promise<void> {
  const world = new World('iso', { ANTHROPIC_API_KEY: 'sesame', AWS_SECRET_ACCESS_KEY: 'sesame' });
  const server = createServer((socket) => socket.end('reached'));
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const home = world.env['HOME'] ?? '';
    mkdirSync(join(home, '.ssh'));
    writeFileSync(join(home, '.ssh', 'id_rsa'), 'sesame');
    const folder = world.workspace('ws', { 'secret.txt': 'as the person has it\n' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    const other = await world.start(client, folder);
    writeFileSync(join(folder, 'after.txt'), 'sesame');
    await world.sh(client, other, 'echo sesame > other.txt');
    const at = places(world.env);
    const script = [
      `test -e ${at.socket} && echo "the helper's socket"`,
      `test -e ${world.store(folder).socket} && echo "boughfs' socket"`,
      `test -e ${at.state} && echo "the state folder"`,
      `ls ${other.folder ?? ''} 2>/dev/null && echo "another branch's mount"`,
      `ls ${world.store(folder).store} 2>/dev/null && echo "the store"`,
      'cat /etc/shadow 2>/dev/null && echo "shadow"',
      'cat ~/.ssh/id_rsa 2>/dev/null && echo "ssh key"',
      `cat ${home}/.ssh/id_rsa 2>/dev/null && echo "ssh key"`,
      'test -e other.txt && echo "another branch"',
      'find / -xdev -name id_rsa 2>/dev/null | grep . && echo "ssh key somewhere"',
      'env | grep sesame && echo "a secret in the environment"',
      'cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" | grep sesame && echo "a secret in /proc"',
      `node -e 'require("net").connect(${port}, "127.0.0.1").on("data", (d) => console.log(String(d))).on("error", () => {})'`,
      'echo x 2>/dev/null > /usr/bin/bough-was-here && echo "wrote to /usr"',
      'mount -o remount,rw /usr 2>/dev/null && echo "remounted"',
      `ls /proc | grep -qx ${client.pid} && tr "\\0" " " < /proc/${client.pid}/cmdline | grep helper && echo "the helper's process"`,
      'true',
    ].join('\n');
    equal(await world.sh(client, branch, script), '', 'what was reached');
    await world.sh(client, branch, 'rm -rf ./* && echo mine > secret.txt');
    ensure(existsSync(join(folder, 'after.txt')), 'the real workspace is untouched');
    equal(await world.sh(client, other, 'cat secret.txt'), 'as the person has it\n', 'and so is the other branch');
  } finally {
    server.close();
    await world.end();
  }
}

async function homeAsWorkspace(): Promise<void> {
  const scratch = new World('homews');
  // State and sockets lie in the workspace, as they do when a person opens their home.
  const home = scratch.workspace('person', {
    'notes.txt': 'notes\n',
    '.ssh/id_rsa': 'sesame',
    'deep/.ssh/config': 'fine',
  });
  Object.assign(scratch.env, { HOME: home, XDG_STATE_HOME: join(home, '.local', 'state') });
  const world = scratch;
  try {
    const client = await world.client();
    const branch = await world.start(client, home);
    const seen = await world.sh(
      client,
      branch,
      'pwd; echo ~; cat notes.txt; ls -A; ls -A .local/state; cat deep/.ssh/config',
    );
    equal(
      seen,
      `${home}\n/home/.bough\nnotes.txt\n`.replace('notes.txt', 'notes') + '.local\ndeep\nnotes.txt\nfine',
      'what the branch shows',
    );
    await world.sh(client, branch, 'echo changed > notes.txt; echo own > ~/own');
    const { changes } = await client.request('bough/diff', { branch: branch.id });
    equal(
      changes.map(({ path }) => path),
      ['notes.txt'],
      'the diff knows nothing of the store',
    );
    await client.request('bough/commit', { branch: branch.id });
    await client.request('bough/abort', { branch: branch.id });
    await world.nothingLeft();
    ensure(existsSync(join(home, '.ssh', 'id_rsa')), 'the key is where it was');
  } finally {
    await world.end();
  }
}

async function abortEndsAll(): Promise<void> {
  const world = new World('abort');
  try {
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    const client = await world.client();
    const stubborn =
      'trap "" TERM INT HUP QUIT; setsid sh -c "trap \'\' TERM HUP; echo > daemon; while :; do sleep 1; done" & echo > agent; while :; do sleep 1; done';
    const branch = await world.start(client, folder, stubborn);
    const at = branch.folder ?? '';
    await until('the agent and its daemon run', () => existsSync(join(at, 'agent')) && existsSync(join(at, 'daemon')));
    const running = client.request('bough/exec', {
      branch: branch.id,
      command: ['sh', '-c', 'trap "" TERM; echo > command; while :; do sleep 1; done'],
    });
    running.catch(() => undefined);
    await until('the command runs', () => existsSync(join(at, 'command')));
    await client.request('bough/abort', { branch: branch.id });
    equal(world.leftovers(), { mounts: [], processes: [], folders: [] }, 'when the abort has answered');
    equal(await codeOf(running), 'E_STOPPED', 'the command that ran');
    equal(await codeOf(client.request('bough/abort', { branch: branch.id })), 'E_NO_BRANCH', 'a second abort');
  } finally {
    await world.end();
  }
}

async function missingPrograms(): Promise<void> {
  const world = new World('bare');
  try {
    // All that the helper needs but bubblewrap.
    const bin = world.scratch.folder('bin');
    for (const name of ['flock', 'setsid', 'git', 'bash', 'sh', 'umount', 'fusermount3']) {
      for (const place of ['/usr/bin', '/bin']) {
        if (!existsSync(join(place, name)) || existsSync(join(bin, name))) continue;
        symlinkSync(join(place, name), join(bin, name));
      }
    }
    const folder = world.workspace('ws', { 'a.txt': 'one\n' });
    world.env['PATH'] = bin;
    const client = await world.client();
    const start = client.request('bough/start', { folder, agent: 'shell' });
    equal(await codeOf(start), 'E_NO_BWRAP', 'a start without bubblewrap');
    await start.catch((error: unknown) => {
      const { fix } = (error as { detail: { fix: string } }).detail;
      ensure(fix.includes('apt-get install bubblewrap'), `the fix: ${fix}`);
    });
    equal((await client.request('bough/list', { folder })).branches, [], 'nothing is half made');
    const { agents } = await client.request('bough/agents', { folder });
    ensure(
      agents.some(({ id, missing }) => id === 'claude' && missing !== undefined),
      'an agent that is not installed says so',
    );
    await client.request('bough/shutdown', {});
    await client.closed;

    world.env['BOUGH_BOUGHFS'] = '/bin/false';
    const broken = await world.client();
    const opened = await broken.request('bough/open', { folder });
    equal(opened.problem?.code, 'E_BOUGHFS_START', 'a file server that does not start');
    ensure(opened.problem?.message.includes('bough doctor') === true, `what to do: ${opened.problem?.message}`);
    equal(await codeOf(broken.request('bough/list', { folder })), 'E_BOUGHFS_START', 'a list of that workspace');
  } finally {
    await world.end();
  }
}
