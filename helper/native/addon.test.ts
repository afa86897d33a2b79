// The native module against the real kernel: every function through its typed face.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  addonCandidates,
  ficlone,
  openPty,
  peerCredentials,
  pidfdOpen,
  pidfdSendSignal,
  probeFuse,
  probeKvm,
  renameExchange,
  renameNoReplace,
  resizePty,
} from './addon.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'bough-addon-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

/** Runs `use` with the server's side of a connection to a unix socket. */
async function withConnection(use: (server: Socket) => void): Promise<void> {
  const server: Server = createServer().listen(join(dir, 'socket'));
  await once(server, 'listening');
  const client = createConnection(join(dir, 'socket'));
  const [accepted] = (await once(server, 'connection')) as [Socket];
  try {
    use(accepted);
  } finally {
    client.destroy();
    accepted.destroy();
    server.close();
  }
}

it('tells who is at the other end of a unix socket', async () => {
  await withConnection((socket) => {
    expect(peerCredentials(socket)).toEqual({
      pid: process.pid,
      uid: process.getuid?.(),
      gid: process.getgid?.(),
    });
  });
});

it('refuses to name the peer of a closed socket or of a plain file', async () => {
  await withConnection((socket) => {
    socket.destroy();
    expect(() => peerCredentials(socket)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  });
  const fd = openSync(file('plain', ''), 'r');
  try {
    expect(() => peerCredentials(fd)).toThrow(expect.objectContaining({ code: 'ENOTSOCK', syscall: 'getsockopt' }));
  } finally {
    closeSync(fd);
  }
});

it('signals a process by its pidfd and says when it is gone', async () => {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  const pidfd = pidfdOpen(pid);
  try {
    pidfdSendSignal(pidfd, 0);
    pidfdSendSignal(pidfd, 9);
    expect(await exited).toEqual([null, 'SIGKILL']);
    expect(() => pidfdSendSignal(pidfd, 9)).toThrow(expect.objectContaining({ code: 'ESRCH' }));
  } finally {
    closeSync(pidfd);
    child.kill('SIGKILL');
  }
});

it('refuses arguments that mean nothing', () => {
  expect(() => pidfdOpen(0)).toThrow(RangeError);
  expect(() => pidfdOpen(1.5)).toThrow(RangeError);
  expect(() => pidfdSendSignal(0, 65)).toThrow(RangeError);
  expect(() => renameNoReplace('a\0b', 'c')).toThrow(RangeError);
  expect(() => openPty(0, 80)).toThrow(RangeError);
});

it('swaps two paths in one step', () => {
  const a = file('a', 'first');
  const b = file('b', 'second');
  renameExchange(a, b);
  expect([readFileSync(a, 'utf8'), readFileSync(b, 'utf8')]).toEqual(['second', 'first']);
  expect(() => renameExchange(a, join(dir, 'absent'))).toThrow(
    expect.objectContaining({ code: 'ENOENT', syscall: 'renameat2', path: a }),
  );
});

it('renames only where nothing is replaced', () => {
  const a = file('a', 'first');
  const b = file('b', 'second');
  expect(() => renameNoReplace(a, b)).toThrow(expect.objectContaining({ code: 'EEXIST' }));
  expect(readFileSync(b, 'utf8')).toBe('second');
  renameNoReplace(a, join(dir, 'c'));
  expect(existsSync(a)).toBe(false);
  expect(readFileSync(join(dir, 'c'), 'utf8')).toBe('first');
});

it('reflinks where the file system can, and leaves nothing where it cannot', () => {
  const source = file('source', 'x'.repeat(100_000));
  const target = join(dir, 'target');
  // The same question to coreutils: both must agree about this file system.
  const able = spawnSync('cp', ['--reflink=always', source, join(dir, 'by-cp')]).status === 0;
  expect(ficlone(source, target)).toBe(able);
  expect(existsSync(target)).toBe(able);
  if (able) expect(readFileSync(target, 'utf8')).toBe(readFileSync(source, 'utf8'));
});

it('does not touch a target that exists', () => {
  const source = file('source', 'new');
  const target = file('target', 'kept');
  expect(() => ficlone(source, target)).toThrow(expect.objectContaining({ code: 'EEXIST', path: target }));
  expect(readFileSync(target, 'utf8')).toBe('kept');
});

it('opens a pty that carries bytes both ways and knows its size', () => {
  const { master, slave } = openPty(24, 80);
  const terminal = openSync(slave, constants.O_RDWR | constants.O_NOCTTY);
  try {
    expect(statSync(slave).isCharacterDevice()).toBe(true);
    writeSync(terminal, 'out');
    const buffer = Buffer.alloc(16);
    expect(buffer.toString('utf8', 0, readSync(master, buffer))).toBe('out');
    writeSync(master, 'in\n');
    expect(buffer.toString('utf8', 0, readSync(terminal, buffer))).toBe('in\n');

    const size = (): string => spawnSync('stty', ['size'], { stdio: [terminal, 'pipe', 'inherit'] }).stdout.toString();
    expect(size()).toBe('24 80\n');
    resizePty(master, 50, 132);
    expect(size()).toBe('50 132\n');
  } finally {
    closeSync(terminal);
    closeSync(master);
  }
});

it('agrees with the file system about /dev/fuse', () => {
  const probe = probeFuse();
  if (!existsSync('/dev/fuse')) expect(probe).toEqual({ open: false, errno: 'ENOENT' });
  else expect(probe.open).toBe(probe.errno === null);
});

it('says at which step KVM fails, or that a vCPU ran', () => {
  const probe = probeKvm();
  if (!existsSync('/dev/kvm')) {
    expect(probe).toEqual({
      open: false,
      apiVersion: null,
      vcpuRuns: false,
      error: 'open /dev/kvm failed: ENOENT',
    });
  } else if (probe.vcpuRuns) {
    expect(probe).toEqual({ open: true, apiVersion: 12, vcpuRuns: true, error: null });
  } else {
    expect(probe.error).toMatch(/ failed/);
  }
});

it('looks beside the bundle first, then in the build folder', () => {
  expect(addonCandidates('/x/dist/helper.js').slice(0, 2)).toEqual([
    '/x/dist/bough.node',
    '/x/build/release/bough.node',
  ]);
  expect(addonCandidates('/x/helper/native/addon.ts')).toContain('/x/build/release/bough.node');
});
