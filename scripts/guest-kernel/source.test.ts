import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { sourceArchives } from './source.mjs';
import { requireRoom } from './tools.mjs';

const folder = mkdtempSync(join(tmpdir(), 'kernel-source-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('kernel source', () => {
  it('takes the newest version, in a folder of its own or not', () => {
    mkdirSync(join(folder, 'linux-source-6.8.0'), { recursive: true });
    writeFileSync(join(folder, 'linux-source-6.8.0', 'linux-source-6.8.0.tar.bz2'), '');
    for (const name of ['linux-source-6.1.tar.xz', 'linux-source-6.12.tar.xz', 'linux-config-6.12.tar.xz', 'other']) {
      writeFileSync(join(folder, name), '');
    }
    expect(sourceArchives(folder).map((path) => path.slice(folder.length + 1))).toEqual([
      'linux-source-6.12.tar.xz',
      'linux-source-6.8.0/linux-source-6.8.0.tar.bz2',
      'linux-source-6.1.tar.xz',
    ]);
    expect(sourceArchives(join(folder, 'absent'))).toEqual([]);
  });

  it('says that the disk is full before a build starts', () => {
    expect(() => requireRoom(tmpdir(), 1)).not.toThrow();
    expect(() => requireRoom(tmpdir(), Number.MAX_SAFE_INTEGER)).toThrow(/MiB are free/);
  });
});
