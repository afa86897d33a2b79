import { describe, expect, it } from 'vitest';

import { BoughError } from '../api/client.js';
import type { Change } from '../protocol/boughfs.js';
import type { Branch } from '../protocol/rpc.js';
import { columns, counted } from './columns.js';
import { diffText } from './commands/diff.js';
import { listText } from './commands/list.js';
import { describeError } from './outcome.js';
import { pathArgument, pathText } from './path-text.js';
import { pickBranch, shortId } from './pick-branch.js';

function branch(fields: Partial<Branch> & { id: string }): Branch {
  return {
    parent: 'base',
    name: '',
    group: 0,
    exclusive: false,
    createdMs: 0,
    children: [],
    edits: 0,
    workspace: '/work',
    person: 'running',
    fileState: 'live',
    hint: '',
    agent: 'shell',
    machine: 'process',
    exitCode: null,
    note: null,
    changes: 0,
    checks: null,
    overlaps: 0,
    ...fields,
  };
}

function change(fields: Partial<Change> & { path: Change['path'] }): Change {
  return {
    kind: 'modified',
    type: 'file',
    what: ['content'],
    binary: false,
    lineEndingOnly: false,
    size: { before: 10, after: 12 },
    mode: { before: 0o100644, after: 0o100644 },
    ...fields,
  };
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return describeError(error).code;
  }
  return 'none';
}

describe('which branch is meant', () => {
  const branches = [
    branch({ id: 'aa00.1', name: 'fix' }),
    branch({ id: 'aa00.2', name: 'fix-two' }),
    branch({ id: 'aa00.12', name: 'other' }),
  ];
  const idOf = (wanted: string) => pickBranch(branches, wanted).id;

  it('a whole id or name wins over a beginning', () => {
    expect(idOf('fix')).toBe('aa00.1');
    expect(idOf('1')).toBe('aa00.1');
    expect(idOf('aa00.1')).toBe('aa00.1');
  });

  it('a beginning is enough when only one has it', () => {
    expect(idOf('fix-')).toBe('aa00.2');
    expect(idOf('oth')).toBe('aa00.12');
    expect(idOf('12')).toBe('aa00.12');
  });

  it('says when it may be several, or none', () => {
    expect(codeOf(() => idOf('aa'))).toBe('E_AMBIGUOUS');
    expect(codeOf(() => idOf('zzz'))).toBe('E_NO_BRANCH');
  });

  it('may be left out when one only lives', () => {
    expect(codeOf(() => pickBranch(branches, undefined))).toBe('E_AMBIGUOUS');
    expect(codeOf(() => pickBranch([], undefined))).toBe('E_NO_BRANCH');
    const committed = branch({ id: 'aa00.3', fileState: 'committed' });
    expect(pickBranch([committed, branch({ id: 'aa00.4' })], undefined).id).toBe('aa00.4');
  });

  it('shortens ids of the helper and no others', () => {
    expect([shortId('aa00.12'), shortId('12')]).toEqual(['12', '12']);
  });
});

describe('text', () => {
  it('of names cannot move the cursor or hide a line', () => {
    expect(pathText('a\u001b[2Kb\nc')).toBe('"a\\033[2Kb\\nc"');
    expect(pathText('evil\u202etxt.js')).toBe('"evil\\342\\200\\256txt.js"');
    expect(pathText({ b64: Buffer.from([0x61, 0xff, 0x0a]).toString('base64') })).toBe('"a\\377\\n"');
    expect(pathText('größe\t🌳')).toBe('"größe\\t🌳"');
    expect(pathText('größe/🌳')).toBe('größe/🌳');
  });

  it('stands in columns by characters', () => {
    expect(
      columns([
        ['é', 'x'],
        ['abc', ''],
      ]),
    ).toBe('é    x\nabc');
    expect([counted(1, 'path'), counted(0, 'path'), counted(2, 'branch', 'branches')]).toEqual([
      '1 path',
      '0 paths',
      '2 branches',
    ]);
  });
});

it('the tree of branches', () => {
  const branches = [
    branch({ id: 'aa00.1', name: 'shell', changes: 1 }),
    branch({
      id: 'aa00.2',
      name: 'try-1',
      parent: 'aa00.1',
      agent: 'repair',
      person: 'stopped',
      exitCode: 0,
      hint: 'constants first',
      changes: 3,
      overlaps: 2,
      edits: 7,
      checks: { command: 'npm test', state: 'passed', exitCode: 0, startedMs: 0, endedMs: 5, output: '', edits: 7 },
    }),
    branch({
      id: 'aa00.3',
      name: 'try-2',
      parent: 'aa00.1',
      agent: 'repair',
      person: 'failed',
      exitCode: 3,
      changes: null,
      edits: 8,
      checks: { command: 'npm test', state: 'failed', exitCode: 1, startedMs: 0, endedMs: 5, output: '', edits: 7 },
    }),
  ];
  const commits = [{ commit: '1', branch: '2', into: 'base', atMs: 0, paths: 1, undoable: true }];
  expect(listText({ folder: '/work', branches, commits })).toBe(
    [
      '/work',
      '  BRANCH   ID      STATE       AGENT   CHANGES                 CHECKS                HINT',
      '  shell    aa00.1  running     shell   1                       -',
      '    try-1  aa00.2  stopped     repair  3, 2 also in a sibling  passed                constants first',
      '    try-2  aa00.3  failed (3)  repair  ?                       failed, then changed',
      '',
      '1 commit can be undone: bough undo',
    ].join('\n'),
  );
  expect(listText({ folder: '/work', branches: [], commits: [] })).toContain('bough start');
});

it('a diff hides nothing', () => {
  const changes = [
    change({ path: 'src/a.js' }),
    change({ path: 'run.sh', what: ['mode'], mode: { before: 0o100644, after: 0o100755 } }),
    change({ path: 'logo.png', kind: 'added', binary: true, size: { before: 0, after: 90 } }),
    change({ path: 'empty', kind: 'added', type: 'directory', size: { before: 0, after: 0 } }),
    change({ path: 'new.js', kind: 'renamed', from: 'old.js', similarity: 90 }),
    change({ path: 'link', type: 'symlink', what: ['target'], target: { before: 'a', after: 'b' } }),
    change({ path: 'dos.txt', lineEndingOnly: true }),
    change({ path: 'gone', kind: 'deleted', what: ['content'] }),
    change({ path: 'mine', what: ['owner', 'xattr'] }),
  ];
  expect(diffText({ changes, total: 9, drift: { changed: ['src/a.js'], others: 2 } })).toBe(
    [
      'M  src/a.js         10 → 12 bytes',
      'M  run.sh           mode 644 → 755',
      'A  logo.png         90 bytes, binary',
      'A  empty/',
      'R  old.js → new.js  90 % alike, 10 → 12 bytes',
      'M  link             symlink, target a → b',
      'M  dos.txt          line endings only',
      'D  gone',
      'M  mine             owner, xattr',
      '9 changes; changed in the folder meanwhile: src/a.js; 2 other paths of the folder moved',
    ].join('\n'),
  );
  expect(diffText({ changes: [], total: 0, drift: { changed: [], others: 0 } })).toBe('0 changes');
});

it('a path that was printed may be given back', () => {
  const bytes = { b64: Buffer.from('bytes-\xff-end\n', 'latin1').toString('base64') };
  for (const path of [bytes, 'new\nline', 'größe\t🌳', 'say "hi"', 'back\\slash', 'a\\377', 'plain', '-rf']) {
    expect(pathArgument(pathText(path))).toEqual(path);
  }
});

it('paths stay in the folder', () => {
  expect(pathArgument('./src//pages.js')).toBe('src/pages.js');
  expect(pathArgument('.')).toBe('');
  expect(codeOf(() => pathArgument('../x'))).toBe('E_USAGE');
  expect(codeOf(() => pathArgument('/etc/passwd'))).toBe('E_USAGE');
  expect(codeOf(() => pathArgument('"a/\\056./../b"'))).toBe('E_USAGE');
});

it('an error has its code, its fix and its paths', () => {
  const side = { type: 'file', size: 1, mode: 0o644, binary: false } as const;
  const error = new BoughError('E_CONFLICT', 'One path was changed on both sides.', {
    fix: 'Resolve it, then commit again.',
    conflicts: [{ path: 'src/a.js', reason: 'both-changed', base: side, ours: side, theirs: side }],
  });
  expect(describeError(error)).toMatchObject({
    code: 'E_CONFLICT',
    fix: 'Resolve it, then commit again.',
    lines: ['src/a.js: both-changed'],
    data: { code: 'E_CONFLICT' },
  });
  expect(describeError(new BoughError('E_STATE', 'x')).fix).toContain('bough ls');
  expect(describeError(new BoughError('E_NEW', 'x')).fix).toContain('bough doctor');
  expect(describeError(new Error('odd')).code).toBe('E_INTERNAL');
});
