// boughfs as it normally runs: by a person without privileges, who mounts with fusermount3. The cases run natively as that
// person first; what holds there must hold on the branch. All of it happens in a mount namespace of its own, in which
// /dev/fuse may be opened by everybody, as distributions have it.
import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findBoughfs } from '../../helper/files/boughfs-process.js';
import { Boughfs } from '../../helper/files/boughfs.js';
import { DEADLINE_MS, root, run, until, type Checks, type Ran, type Scratch } from '../harness.js';

const PERSON = 65534;
/** Without the places that only the one who runs this may enter. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/sbin:/sbin';

interface CaseResult {
  readonly name: string;
  readonly status: 'ok' | 'fail' | 'skip';
  readonly why: string;
}

/** Why this machine cannot show it; undefined if it can. */
async function missing(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'needs root to become somebody else';
  for (const program of ['fusermount3', 'unshare', 'nsenter', 'setpriv', 'mknod']) {
    if ((await run('sh', ['-c', `command -v ${program}`])).status !== 0) return `${program} is not installed`;
  }
  if ((await run('python3', ['-c', ''], { env: { PATH: SYSTEM_PATH } })).status !== 0)
    return 'no python3 for everybody';
  const fusermount = (await run('sh', ['-c', 'command -v fusermount3'])).out.trim();
  if ((statSync(fusermount).mode & 0o4000) === 0) return 'fusermount3 is not setuid root here';
  if ((await run('unshare', ['-m', 'true'])).status !== 0) return 'no mount namespaces here';
  return undefined;
}

/** The lines of mountinfo in that namespace about this mount point. */
async function mounts(pid: number, point: string): Promise<string[]> {
  const told = await run('cat', [`/proc/${String(pid)}/mountinfo`]);
  return told.out.split('\n').filter((line) => line.includes(` ${point} `));
}

export async function person(scratch: Scratch, checks: Checks): Promise<void> {
  const why = await missing();
  if (why !== undefined) {
    checks.skip('[person] boughfs without privileges', why);
    return;
  }
  const top = scratch.folder('person');
  chmodSync(scratch.path, 0o755);
  const folders = ['base', 'store', 'mount', 'run', 'native'].map((name) => scratch.folder('person', name));
  const [base, store, mount, runtime, native] = folders as [string, string, string, string, string];
  // The checkout may lie where this person may not look.
  const cases = scratch.folder('person', 'cases');
  for (const file of readdirSync(join(root, 'test', 'conformance')).filter((name) => name.endsWith('.py'))) {
    copyFileSync(join(root, 'test', 'conformance', file), join(cases, file));
  }
  const program = join(top, 'boughfs');
  copyFileSync(findBoughfs(process.env), program);
  chmodSync(program, 0o755);
  await run('chown', [`${String(PERSON)}:${String(PERSON)}`, ...folders]);
  const device = join(top, 'fuse');
  await run('mknod', [device, 'c', '10', '229']);
  chmodSync(device, 0o666);

  const bound = 'mount --bind "$0" /dev/fuse && exec "$@"';
  const as = ['setpriv', `--reuid=${String(PERSON)}`, `--regid=${String(PERSON)}`, '--clear-groups'];
  const env = { PATH: SYSTEM_PATH, HOME: runtime, PYTHONDONTWRITEBYTECODE: '1' };
  const probe = await run('unshare', ['-m', 'sh', '-c', bound, device, ...as, 'sh', '-c', 'exec 3<>/dev/fuse']);
  if (probe.status !== 0) {
    checks.skip('[person] boughfs without privileges', `/dev/fuse cannot be opened to everybody here: ${probe.err}`);
    return;
  }
  const socket = join(runtime, 'control');
  const server = spawn(
    'unshare',
    [...['-m', 'sh', '-c', bound, device, ...as], ...[program, '--store', store, '--base', base, '--socket', socket]],
    { env, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = new Promise<number | null>((resolve) => server.once('exit', resolve));
  const pid = server.pid ?? 0;
  const inside = (args: readonly string[]): Promise<Ran> =>
    run('nsenter', ['-t', String(pid), '-m', `--wd=${top}`, '--', ...as, ...args], { env });
  const results = async (folder: string): Promise<Map<string, CaseResult>> => {
    const ran = await inside(['python3', join(cases, 'runner.py'), 'run', folder]);
    const lines = ran.out.trim().split('\n');
    return new Map(lines.map((line) => JSON.parse(line) as CaseResult).map((each) => [each.name, each]));
  };

  try {
    await until(`boughfs listens; it said: ${said}`, () => existsSync(socket) || server.exitCode !== null, DEADLINE_MS);
    for (const folder of [native, base]) {
      const built = await inside(['python3', join(cases, 'runner.py'), 'prepare', folder]);
      if (built.status !== 0) throw new Error(`The cases' files cannot be made in ${folder}: ${built.err}`);
    }
    const client = await Boughfs.connect(socket);
    try {
      const { branches } = await client.request('branch.create', { parent: 'base', count: 1, group: 'independent' });
      const branch = branches[0]?.id ?? '';
      await client.request('branch.mount', { branch, at: mount });
      await checks.check('[person] mountinfo tells whose it is', async () => {
        const [line] = await mounts(pid, mount);
        for (const part of ['nosuid', 'nodev', 'fuse.bough', branch, `user_id=${String(PERSON)}`]) {
          if (line?.includes(part) !== true) throw new Error(`no "${part}" in ${line ?? 'mountinfo'}`);
        }
      });
      const before = checks.passed;
      const expected = await results(native);
      for (const [name, result] of await results(mount)) {
        if (expected.get(name)?.status !== 'ok') continue; // this person may not do it anywhere
        if (result.status === 'ok') checks.pass();
        else checks.fail(`[person] ${name}`, result.why);
      }
      console.log(
        `person (boughfs without privileges, mounted by fusermount3): ${String(checks.passed - before)} passed`,
      );
      await checks.check('[person] what was changed is committed by the person', async () => {
        const made = await inside(['sh', '-c', 'cd "$0" && echo new > committed && mkdir folder', mount]);
        if (made.status !== 0) throw new Error(made.err);
        await client.request('branch.commit', { branch, paths: ['committed', 'folder'] });
        const owner = statSync(join(base, 'committed'));
        if (owner.uid !== PERSON) throw new Error(`belongs to ${String(owner.uid)}`);
      });
      await checks.check('[person] unmounted, nothing stays', async () => {
        await client.request('branch.unmount', { branch });
        const left = await mounts(pid, mount);
        if (left.length > 0) throw new Error(left.join('\n'));
      });
    } finally {
      client.close();
    }
  } catch (error) {
    checks.fail('[person]', new Error(`${String(error)}\n${said}`));
  } finally {
    server.kill('SIGTERM');
    const timer = setTimeout(() => server.kill('SIGKILL'), DEADLINE_MS);
    await ended;
    clearTimeout(timer);
  }
}
