import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { answer, fail, pass, skip, warn } from './check.js';
import { runDoctor } from './doctor.js';
import { cgroupDelegation, fusePassthrough, fusermount, hugePages, inotifyLimits, kernelVersion } from './kernel.js';
import { bubblewrap, kvm, memory, userNamespaces } from './machine.js';
import { roomVerdict, socketFolder, stateFolder, workFolder } from './places.js';
import { boughfs, git, node } from './programs.js';
import { doctorTable } from './table.js';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bough-doctor-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const uid = process.getuid?.() ?? 0;

describe('the kernel', () => {
  it('must be new enough', () => {
    expect(kernelVersion('4.19.0').status).toBe('fail');
    expect(kernelVersion('5.13.0').status).toBe('warn');
    expect(kernelVersion('5.15.0-91-generic').status).toBe('pass');
    expect(kernelVersion('6.1.0').status).toBe('pass');
  });

  it('has passthrough from 6.9 on, for root, when built with it', () => {
    const root = 'CapEff:\t000001ffffffffff\n';
    const built = 'CONFIG_FUSE_PASSTHROUGH=y\n';
    expect(fusePassthrough('6.8.0', root, built).status).toBe('warn');
    expect(fusePassthrough('6.9.0', root, built).status).toBe('pass');
    expect(fusePassthrough('6.12.0', root, '').status).toBe('warn');
    expect(fusePassthrough('6.12.0', 'CapEff:\t0000000000000000\n', built).detail).toContain('only root');
  });

  it('limits watches', () => {
    expect(inotifyLimits(8192, 128).status).toBe('warn');
    expect(inotifyLimits(524288, 128).status).toBe('pass');
    expect(inotifyLimits(524288, 16).status).toBe('warn');
  });

  it('tells huge pages', () => {
    expect(hugePages('always madvise [never]').status).toBe('warn');
    expect(hugePages('always [madvise] never')).toEqual(pass('madvise'));
  });

  it('delegates a cgroup or does not', () => {
    const mounted = (at: string) => `31 24 0:26 / ${at} rw - cgroup2 cgroup2 rw`;
    expect(cgroupDelegation('', '').status).toBe('warn');
    mkdirSync(join(folder, 'cgroup', 'mine'), { recursive: true });
    writeFileSync(join(folder, 'cgroup', 'mine', 'cgroup.procs'), '');
    const controllers = join(folder, 'cgroup', 'mine', 'cgroup.controllers');
    writeFileSync(controllers, 'cpu memory pids\n');
    expect(cgroupDelegation(mounted(join(folder, 'cgroup')), '0::/mine\n').status).toBe('pass');
    writeFileSync(controllers, 'cpu memory\n');
    expect(cgroupDelegation(mounted(join(folder, 'cgroup')), '0::/mine\n').detail).toContain('lacks pids');
  });
});

describe('programs', () => {
  it('misses fusermount3 only where it is needed', () => {
    expect(fusermount({ PATH: folder }, 0).status).toBe('skip');
    expect(fusermount({ PATH: folder }, 1000)).toMatchObject({ status: 'fail', fix: 'sudo apt-get install fuse3' });
  });

  it('names the package of bubblewrap', async () => {
    expect(await bubblewrap({ PATH: folder })).toMatchObject({
      status: 'fail',
      fix: 'sudo apt-get install bubblewrap',
    });
  });

  it('passes on what bubblewrap says when it cannot run', async () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const script =
      '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.0 && exit 0\necho "bwrap: No permissions" >&2\nexit 1\n';
    writeFileSync(join(bin, 'bwrap'), script);
    chmodSync(join(bin, 'bwrap'), 0o755);
    const verdict = await bubblewrap({ PATH: `${bin}:${process.env['PATH'] ?? ''}` });
    expect(verdict.status).toBe('fail');
    expect(verdict.detail).toBe('bubblewrap 0.0 does not run a program: bwrap: No permissions');
    expect(verdict.fix).toContain('kernel.unprivileged_userns_clone=1');
  });

  it('works without git, and needs a new Node', async () => {
    expect((await git({ PATH: folder })).status).toBe('warn');
    expect(node('v18.19.0').status).toBe('fail');
    expect(node('v22.1.0').status).toBe('pass');
  });

  it('asks boughfs for its version', async () => {
    const program = join(folder, 'boughfs');
    writeFileSync(program, '#!/bin/sh\necho "boughfs: no such option" >&2\nexit 2\n');
    chmodSync(program, 0o755);
    const environment = { PATH: process.env['PATH'], BOUGH_BOUGHFS: program };
    expect((await boughfs(environment)).detail).toBe(`${program} --version failed: boughfs: no such option`);
    writeFileSync(program, '#!/bin/sh\n[ "$1" = --version ] && echo boughfs 9\n');
    expect(await boughfs(environment)).toEqual(pass(`boughfs 9 (${program})`));
  });
});

describe('this machine', () => {
  it('allows user namespaces or says which switch is off', () => {
    const limits = { most: 1000, debian: undefined, appArmor: undefined };
    expect(userNamespaces(1000, limits).status).toBe('pass');
    expect(userNamespaces(1000, { ...limits, most: 0 }).status).toBe('fail');
    expect(userNamespaces(0, { ...limits, most: 0 }).status).toBe('warn');
    expect(userNamespaces(1000, { ...limits, debian: 0 }).status).toBe('fail');
    expect(userNamespaces(1000, { ...limits, appArmor: 1 }).status).toBe('warn');
    expect(userNamespaces(0, { ...limits, appArmor: 1, debian: 0 }).status).toBe('pass');
  });

  it('runs a virtual CPU or does not, and neither is a failure', () => {
    expect(kvm(() => ({ open: true, vcpuRuns: true, apiVersion: 12, error: null })).status).toBe('pass');
    const closed = kvm(() => ({ open: false, vcpuRuns: false, apiVersion: null, error: 'EACCES' }));
    expect(closed).toMatchObject({ status: 'warn', detail: expect.stringContaining('EACCES') });
    expect(kvm(() => ({ open: true, vcpuRuns: false, apiVersion: 12, error: 'run' })).fix).toContain('nested');
  });

  it('has memory and room, or little of it', () => {
    expect(memory('MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n')).toEqual(pass('4.0 GiB of 8.0 GiB available'));
    expect(memory('MemTotal:  8388608 kB\nMemAvailable:  1024 kB\n').status).toBe('warn');
    expect(roomVerdict(50 * 1024 ** 3, 1_000_000).status).toBe('pass');
    expect(roomVerdict(50 * 1024 ** 3, 10).status).toBe('warn');
    expect(roomVerdict(500 * 1024 ** 2, undefined).status).toBe('warn');
    expect(roomVerdict(1024, undefined).status).toBe('fail');
  });
});

describe('places', () => {
  it('wants a socket folder of this user alone, and not too long', () => {
    const runtime = join(folder, 'run');
    mkdirSync(runtime, { mode: 0o700 });
    expect(socketFolder(runtime, uid).status).toBe('pass');
    chmodSync(runtime, 0o755);
    expect(socketFolder(runtime, uid)).toMatchObject({ status: 'fail', fix: `chmod 700 ${runtime}` });
    expect(socketFolder(runtime, uid + 1).status).toBe('fail');
    expect(socketFolder(join(folder, 'later'), uid).status).toBe('pass');
    expect(socketFolder(join(folder, 'x'.repeat(90)), uid).detail).toContain('too long');
  });

  it('leaves nothing in the state folder, and fails where it cannot write', () => {
    const state = join(folder, 'state');
    expect(['pass', 'warn']).toContain(stateFolder(state).status);
    expect(readdirSync(state)).toEqual([]);
    writeFileSync(join(folder, 'file'), '');
    expect(stateFolder(join(folder, 'file', 'below')).status).toBe('fail');
  });

  it('looks at the folder to work in', () => {
    expect(workFolder(folder, '/nowhere').status).toBe('pass');
    expect(workFolder(join(folder, 'missing'), '/nowhere').status).toBe('fail');
    expect(workFolder(join(folder, 'state'), join(folder, 'state')).status).toBe('fail');
  });
});

it('a check that throws is an answer', async () => {
  const check = await answer({
    id: 'x',
    title: 'X',
    ask: () => {
      throw new Error('broken');
    },
  });
  expect(check).toMatchObject({ id: 'x', status: 'fail', detail: 'could not be checked: broken' });
});

it('the table is what the golden file says', () => {
  const checks = [
    { id: 'a', title: 'Linux kernel', ...pass('Linux 6.1') },
    { id: 'b', title: 'inotify limits', ...warn('8192 watches', 'sudo sysctl more') },
    { id: 'c', title: 'FUSE device', ...fail('/dev/fuse is not there', 'sudo modprobe fuse') },
    { id: 'd', title: 'Guest kernel', ...skip('not in this version') },
  ];
  const golden = readFileSync(join(import.meta.dirname, 'table.golden.txt'), 'utf8');
  expect(`${doctorTable({ ok: false, checks })}\n`).toBe(golden);
  expect(doctorTable({ ok: true, checks: checks.slice(0, 1) })).toContain('Bough can run here: 1 ok, 0 warnings,');
});

it('the whole doctor answers on this machine, each check once, each problem with a fix', async () => {
  const environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    XDG_RUNTIME_DIR: join(folder, 'xdg-run'),
    XDG_STATE_HOME: join(folder, 'xdg-state'),
  };
  const { ok, checks } = await runDoctor({ folder, environment });
  const ids = checks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toContain('kvm');
  expect(ids.at(-1)).toBe('folder');
  for (const { id, status, detail, fix } of checks) {
    expect(detail, id).not.toBe('');
    expect(detail, id).not.toContain('could not be checked');
    expect(fix !== '', id).toBe(status === 'warn' || status === 'fail');
  }
  expect(ok).toBe(checks.every(({ status }) => status !== 'fail'));
  expect(existsSync(join(folder, 'xdg-run'))).toBe(false);
});
