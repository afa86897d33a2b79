// With the real bubblewrap: what a program in an enclosure sees, and that nothing of it is left after its end.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Enclosure, Run } from './machine.js';
import { ProcessMachine } from './process-machine.js';
import { isRunning, membersOf } from './process-table.js';

const machine = new ProcessMachine(process.env);
const path = process.env['PATH'] ?? '';
let root = '';
let enclosure: Enclosure;
const runs: Run[] = [];

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'bough-machine-')));
  for (const name of ['workspace', 'mount', 'home', 'tmp']) mkdirSync(join(root, name));
  writeFileSync(join(root, 'workspace', 'real'), 'the real workspace');
  writeFileSync(join(root, 'mount', 'branch'), 'the branch');
  enclosure = {
    folder: join(root, 'workspace'),
    mount: join(root, 'mount'),
    home: join(root, 'home'),
    tmp: join(root, 'tmp'),
    hidden: [],
    readOnly: [],
    network: false,
  };
});
afterEach(async () => {
  await Promise.all(runs.splice(0).map((run) => run.stop(0)));
  rmSync(root, { recursive: true, force: true });
});

async function start(command: readonly string[], terminal?: { rows: number; columns: number }) {
  const run = await machine.run({
    role: 'exec',
    branch: 'w.b1',
    enclosure,
    command,
    environment: { PATH: path },
    ...(terminal === undefined ? {} : { terminal }),
  });
  runs.push(run);
  const said = { text: '' };
  run.onOutput(({ data }) => (said.text += data.toString('utf8')));
  return { run, said };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const end = Date.now() + 45_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`Waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('a command', () => {
  it('finds the branch in the place of the workspace, and its own HOME and /tmp', async () => {
    const { run, said } = await start([
      'sh',
      '-c',
      'pwd; cat branch; ls; echo a > ~/h; echo b > /tmp/t; echo c > new; exit 7',
    ]);
    expect(await run.exited).toEqual({ exitCode: 7 });
    expect(said.text).toBe(`${join(root, 'workspace')}\nthe branchbranch\n`);
    expect(readFileSync(join(root, 'home', 'h'), 'utf8')).toBe('a\n');
    expect(readFileSync(join(root, 'tmp', 't'), 'utf8')).toBe('b\n');
    expect(readFileSync(join(root, 'mount', 'new'), 'utf8')).toBe('c\n');
  });

  it('cannot undo its enclosure, read secrets, or see anything of who started it', async () => {
    process.env['BOUGH_TEST_SECRET'] = 'sesame';
    const script = [
      'mount -o remount,rw /usr && echo REMOUNTED',
      'touch /usr/x && echo WROTE',
      'cat /etc/shadow && echo SHADOW',
      'grep -q sesame /proc/1/environ && echo ENVIRONMENT',
      'env | grep -q sesame && echo ENVIRONMENT',
      'unshare --mount true && echo UNSHARED',
      `ls ${join(root, 'mount')} && echo OUTSIDE`,
      'ip link 2>/dev/null | grep -q eth && echo NETWORK',
      'exit 0',
    ].join('\n');
    const { run, said } = await start(['sh', '-c', script]);
    expect(await run.exited).toEqual({ exitCode: 0 });
    delete process.env['BOUGH_TEST_SECRET'];
    expect(said.text).not.toMatch(/REMOUNTED|WROTE|SHADOW|ENVIRONMENT|OUTSIDE|NETWORK/);
    // As a person a user namespace may be entered, which gives no power over the host; as root it may not.
    if (process.getuid?.() === 0) expect(said.text).not.toContain('UNSHARED');
  });

  it('leaves nothing that runs on after it', async () => {
    const { run } = await start(['sh', '-c', 'setsid sleep 1000 & exit 0']);
    expect(await run.exited).toEqual({ exitCode: 0 });
    expect(isRunning(run.init)).toBe(false);
    expect(machine.survivors(root)).toEqual([]);
  });

  it('that is not there is told by its status', async () => {
    const { run, said } = await start(['no-such-program']);
    expect((await run.exited).exitCode).toBe(1);
    expect(said.text).toContain('execvp no-such-program');
  });
});

describe('stopping', () => {
  it('ends a program that ignores every polite signal, and all its children', async () => {
    const { run, said } = await start([
      'sh',
      '-c',
      'trap "" TERM INT HUP; sleep 1000 & echo ready; while :; do sleep 1000; done',
    ]);
    await until('the program is ready', () => said.text.includes('ready'));
    expect(machine.survivors(root).map(({ branch, role, init }) => [branch, role, init])).toEqual([
      ['w.b1', 'exec', run.init],
    ]);
    await run.stop(200);
    expect(await run.exited).toEqual({ exitCode: null });
    expect(machine.survivors(root)).toEqual([]);
  });

  it('ends an interactive shell without waiting for the grace to pass', async () => {
    const { run, said } = await start(['bash', '-i'], { rows: 24, columns: 80 });
    run.write(Buffer.from('echo rea$((0))dy\n'));
    await until('the shell is ready', () => said.text.includes('rea0dy'));
    // Much longer than the test may take: only its own end can end it.
    await run.stop(600_000);
    expect(isRunning(run.init)).toBe(false);
  });

  it('ends a frozen program, too', async () => {
    const { run, said } = await start(['sh', '-c', 'echo ready; sleep 1000']);
    await until('the program is ready', () => said.text.includes('ready'));
    run.freeze();
    await run.stop(30_000);
    expect(isRunning(run.init)).toBe(false);
  });
});

describe('freezing', () => {
  it('lets nothing be written until it is thawed', async () => {
    const { said, run } = await start(['sh', '-c', 'echo ready; while :; do echo x >> log; done']);
    const log = join(root, 'mount', 'log');
    await until('the program is ready', () => said.text.includes('ready') && membersOf(run.init).length > 0);
    run.freeze();
    const before = readFileSync(log).length;
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(readFileSync(log).length).toBe(before);
    run.thaw();
    await until('it writes again', () => readFileSync(log).length > before);
  });
});

describe('freezing an interactive shell', () => {
  it('does not make it think that its job was stopped by Ctrl-Z', async () => {
    const { run, said } = await start(['bash', '-i'], { rows: 24, columns: 80 });
    run.write(Buffer.from('sh -c "sleep 1000 & echo jo$((0))b; wait; exit"\n'));
    await until('the job runs', () => said.text.includes('jo0b') && membersOf(run.init).length === 3);
    for (let round = 0; round < 20; round++) {
      run.freeze();
      run.thaw();
    }
    run.write(Buffer.from([3]));
    run.write(Buffer.from('echo stopped: $(jobs)$((0)).\n'));
    await until('the shell answers', () => /stopped: .*0\./.test(said.text));
    expect(said.text).toMatch(/stopped: 0\./);
  });
});

describe('a terminal', () => {
  it('is the controlling one, tells its size, and passes Ctrl-C to the program alone', async () => {
    const { run, said } = await start(['bash', '-i'], { rows: 31, columns: 97 });
    run.write(Buffer.from('stty size\n'));
    await until('the first size', () => said.text.includes('31 97'));
    run.resize(20, 61);
    run.write(Buffer.from('stty size\n'));
    await until('the second size', () => said.text.includes('20 61'));
    run.write(Buffer.from('sleep 1000\n'));
    await until('sleep runs', () => membersOf(run.init).length > 1);
    run.write(Buffer.from([3]));
    run.write(Buffer.from('echo on$((1))ward; exit 5\n'));
    await until('the shell goes on', () => said.text.includes('on1ward'));
    expect(await run.exited).toEqual({ exitCode: 5 });
  });

  it('takes more input at once than a terminal holds', async () => {
    const { run, said } = await start(['sh', '-c', 'stty raw -echo; echo ready; head -c 100000 | cksum'], {
      rows: 24,
      columns: 80,
    });
    await until('the program is ready', () => said.text.includes('ready'));
    run.write(Buffer.alloc(100_000, 'a'));
    expect(await run.exited).toEqual({ exitCode: 0 });
    expect(said.text).toContain('100000');
  });
});

describe('a run of an earlier helper', () => {
  it('can be taken up and stopped', async () => {
    const { run, said } = await start(['sh', '-c', 'echo ready; sleep 1000']);
    await until('the program is ready', () => said.text.includes('ready'));
    const adopted = machine.adopt(run.init);
    await adopted?.stop(100);
    expect(await adopted?.exited).toEqual({ exitCode: null });
    await run.exited;
    expect(machine.adopt(run.init)).toBeNull();
  });
});

describe('without bubblewrap', () => {
  it('says how to get it', async () => {
    const bare = new ProcessMachine({ PATH: '/nowhere', HOME: root });
    const request = { role: 'exec', branch: 'b', enclosure, command: ['true'], environment: {} } as const;
    await expect(bare.run(request)).rejects.toMatchObject({
      code: 'E_NO_BWRAP',
      detail: { fix: 'sudo apt-get install bubblewrap' },
    });
  });
});
