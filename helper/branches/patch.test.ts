import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Change } from '../protocol/boughfs.js';
import { patchOf, textHunks } from './patch.js';
import { pathBytes } from '../protocol/wire-path.js';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bough-patch-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function change(partial: Partial<Change> & Pick<Change, 'path' | 'kind'>): Change {
  return {
    type: 'file',
    what: ['content'],
    binary: false,
    lineEndingOnly: false,
    size: { before: 1, after: 1 },
    mode: { before: 0o644, after: 0o644 },
    ...partial,
  };
}

/** Contents by path, before and after. */
function contents(before: Record<string, string>, after: Record<string, string>) {
  const read = (files: Record<string, string>) => async (path: Change['path']) =>
    Buffer.from(files[pathBytes(path).toString()] ?? '');
  return { before: read(before), after: read(after) };
}

describe('a patch that git takes', () => {
  const before = {
    'edit.txt': Array.from({ length: 30 }, (_, index) => `line ${index}\n`).join(''),
    'gone.txt': 'bye\n',
    'name with space': 'x',
    'old/name.txt': 'same\nand\nmore\n',
    'run.sh': '#!/bin/sh\n',
    'grün\n.txt': 'a\n',
  };
  const after = {
    'edit.txt': before['edit.txt'].replace('line 3\n', 'line three\n').replace('line 29\n', 'end'),
    'name with space': 'x\n',
    'new/name.txt': 'same\nand\nless\n',
    'run.sh': '#!/bin/sh\n',
    'deep/er/new.txt': 'hello\nworld',
    'empty.txt': '',
    'grün\n.txt': 'b\n',
  };
  const changes: Change[] = [
    change({ path: 'edit.txt', kind: 'modified' }),
    change({ path: 'gone.txt', kind: 'deleted' }),
    change({ path: 'name with space', kind: 'modified' }),
    change({ path: 'new/name.txt', from: 'old/name.txt', kind: 'renamed', similarity: 66 }),
    change({ path: 'run.sh', kind: 'modified', what: ['mode'], mode: { before: 0o644, after: 0o755 } }),
    change({ path: 'deep/er/new.txt', kind: 'added' }),
    change({ path: 'empty.txt', kind: 'added' }),
    change({ path: 'grün\n.txt', kind: 'modified' }),
  ];

  it('turns the one tree into the other', async () => {
    const work = join(folder, 'work');
    for (const [path, text] of Object.entries(before)) {
      mkdirSync(dirname(join(work, path)), { recursive: true });
      writeFileSync(join(work, path), text);
      chmodSync(join(work, path), 0o644);
    }
    const patch = await patchOf(changes, contents(before, after));
    writeFileSync(join(folder, 'patch'), patch);
    execFileSync('git', ['init', '--quiet'], { cwd: work });
    execFileSync('git', ['apply', join(folder, 'patch')], { cwd: work });
    for (const [path, text] of Object.entries(after)) expect(readFileSync(join(work, path), 'utf8')).toBe(text);
    expect(existsSync(join(work, 'gone.txt'))).toBe(false);
    expect(existsSync(join(work, 'old/name.txt'))).toBe(false);
    expect(lstatSync(join(work, 'run.sh')).mode & 0o111).toBe(0o111);
  });
});

describe('what a line diff cannot tell', () => {
  it('is one line each, and nothing is left out', async () => {
    const patch = await patchOf(
      [
        change({ path: 'logo.png', kind: 'modified', binary: true }),
        change({ path: 'huge.log', kind: 'added', size: { before: 0, after: 1 << 30 } }),
        change({ path: 'empty', kind: 'added', type: 'directory', what: [], mode: { before: 0, after: 0o755 } }),
        change({ path: 'mine', kind: 'modified', what: ['owner', 'xattr'] }),
        change({ path: 'link', kind: 'added', type: 'symlink', what: ['target'], mode: { before: 0, after: 0o777 } }),
      ],
      contents({}, { link: 'a/target' }),
    );
    expect(patch).toBe(
      [
        'diff --git a/logo.png b/logo.png',
        'Binary files a/logo.png and b/logo.png differ',
        'diff --git a/huge.log b/huge.log',
        'new file mode 100644',
        'Binary files /dev/null and b/huge.log differ',
        'diff --git a/empty b/empty',
        'new file mode 040755',
        'diff --git a/mine b/mine',
        'bough owner changed',
        'bough xattr changed',
        'diff --git a/link b/link',
        'new file mode 120000',
        '--- /dev/null',
        '+++ b/link',
        '@@ -0,0 +1 @@',
        '+a/target',
        '\\ No newline at end of file',
        '',
      ].join('\n'),
    );
  });

  it('shows a text that has nothing in common whole', () => {
    const old = Array.from({ length: 15_000 }, (_, index) => `old ${index}\n`).join('');
    const young = Array.from({ length: 15_000 }, (_, index) => `new ${index}\n`).join('');
    const hunks = textHunks(old, young);
    expect(hunks.startsWith('@@ -1,15000 +1,15000 @@\n-old 0\n')).toBe(true);
    expect(hunks.endsWith('+new 14999\n')).toBe(true);
  });
});
