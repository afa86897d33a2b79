// On a machine where groups can be made the limits are tried on a real process; elsewhere that nothing is left of the attempt.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { groupParent, limitRun, ownGroupParent, removeEmptyGroups, usualLimits } from './cgroup.js';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'bough-cgroup-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const unified = '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate';
const own = '/user.slice/user-1000.slice/user@1000.service/app.slice/editor.scope';

it('finds the group beside the helper’s own', () => {
  expect(groupParent(unified, `0::${own}\n`)).toBe(`/sys/fs/cgroup${own.replace('/editor.scope', '')}`);
  expect(groupParent(unified, '0::/\n')).toBe('/sys/fs/cgroup');
  expect(groupParent(unified, '9:pids:/\n')).toBeNull();
  expect(groupParent('22 1 8:1 / / rw - ext4 /dev/sda1 rw', `0::${own}\n`)).toBeNull();
});

it('leaves most of the memory to a run, and enough to the person', () => {
  expect(usualLimits(8 * 1024 ** 3)).toEqual({ processes: 4096, memoryBytes: 6 * 1024 ** 3 });
});

it('leaves nothing where no controller is delegated or nothing may be made', () => {
  const parent = join(root, 'slice');
  mkdirSync(parent);
  expect(limitRun(parent, [process.pid])).toBeNull();
  expect(readdirSync(parent)).toEqual([]);
  expect(limitRun(join(root, 'missing'), [process.pid])).toBeNull();
  expect(limitRun(null, [process.pid])).toBeNull();
});

it('removes empty groups of its own and nothing else', () => {
  const parent = join(root, 'left');
  for (const name of ['bough-12', 'bough-13/in-use', 'bough-other', 'session.scope'])
    mkdirSync(join(parent, name), { recursive: true });
  expect(removeEmptyGroups(parent)).toBe(1);
  expect(readdirSync(parent).sort()).toEqual(['bough-13', 'bough-other', 'session.scope']);
  expect(removeEmptyGroups(join(root, 'missing'))).toBe(0);
});

/** Where this process may make a group with both controllers. */
function realParent(): string | null {
  const parent = ownGroupParent();
  if (parent === null) return null;
  const probe = join(parent, `bough-probe-${process.pid}`);
  try {
    mkdirSync(probe);
    return existsSync(join(probe, 'pids.max')) && existsSync(join(probe, 'memory.max')) ? parent : null;
  } catch {
    return null;
  } finally {
    rmSync(probe, { recursive: true, force: true });
  }
}

const parent = realParent();

describe.skipIf(parent === null)('where the controllers are delegated', () => {
  it('a run cannot have more processes than it may, and its group goes with it', async () => {
    const child = spawn('sh', ['-c', 'read go; (sleep 9 & sleep 9 & sleep 9 & sleep 9 &) ; echo done; sleep 9'], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    try {
      const group = limitRun(parent, [child.pid ?? 0], { processes: 3, memoryBytes: 1 << 26 });
      expect(group).not.toBeNull();
      expect(readFileSync(join(group?.path ?? '', 'memory.max'), 'utf8').trim()).toBe(String(1 << 26));
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
      child.stdin.write('\n');
      await expect.poll(() => said, { timeout: 20_000 }).toMatch(/fork/i);
      expect(removeEmptyGroups(parent)).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
    await expect.poll(() => removeEmptyGroups(parent), { timeout: 20_000 }).toBe(1);
  });
});
