import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { groupParent, limitProcesses } from './cgroup.js';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'bough-cgroup-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const unified = '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate';
const own = '/user.slice/user-1000.slice/user@1000.service/app.slice/editor.scope';

it('finds the group beside the helper’s own', () => {
  expect(groupParent(unified, `0::${own}\n`)).toBe(`/sys/fs/cgroup${own.replace('/editor.scope', '')}`);
  expect(groupParent(unified, '9:pids:/\n0::/\n')).toBeNull();
  expect(groupParent('22 1 8:1 / / rw - ext4 /dev/sda1 rw', `0::${own}\n`)).toBeNull();
});

it('leaves nothing where the controller is not delegated or nothing may be made', () => {
  const parent = join(root, 'slice');
  mkdirSync(parent);
  expect(limitProcesses(parent, 'bough-1', [process.pid])).toBeNull();
  expect(readdirSync(parent)).toEqual([]);
  expect(limitProcesses(join(root, 'missing'), 'bough-1', [process.pid])).toBeNull();
  expect(limitProcesses(null, 'bough-1', [process.pid])).toBeNull();
});
