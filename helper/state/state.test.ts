import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BoughError } from '../protocol/failure.js';
import { Audit } from './audit.js';
import { Database, type BranchRecord } from './database.js';
import { places, privateFolder, storePlaces } from './places.js';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'bough-state-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('places', () => {
  it('follow the XDG variables, and ignore relative ones as the specification says', () => {
    const at = places({ HOME: '/h', XDG_RUNTIME_DIR: '/r', XDG_STATE_HOME: '/s', XDG_CACHE_HOME: 'relative' });
    expect(at).toMatchObject({ socket: '/r/bough/helper.sock', state: '/s/bough', cache: '/h/.cache/bough' });
    expect(places({ HOME: '/h' }).runtime).toBe(`/tmp/bough-${process.getuid?.() ?? 0}`);
  });

  it('give each folder a store of its own with a socket path short enough for the kernel', () => {
    const at = places({ HOME: '/h', XDG_RUNTIME_DIR: '/run/user/1000' });
    const a = storePlaces(at, '/a');
    expect(a.mounts).toBe(`/h/.local/state/bough/stores/${a.hash}/mounts`);
    expect(a.hash).not.toBe(storePlaces(at, '/b').hash);
    expect(a.socket.length).toBeLessThan(108);
  });

  it('are private, or refused', () => {
    const folder = join(root, 'open');
    mkdirSync(folder, { mode: 0o777 });
    privateFolder(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    symlinkSync(folder, join(root, 'link'));
    expect(() => privateFolder(join(root, 'link'))).toThrow(BoughError);
  });
});

describe('the database', () => {
  const record: BranchRecord = {
    phase: 'ready',
    hint: 'grün',
    agent: 'shell',
    command: ['a', 'b'],
    machine: 'process',
    network: false,
    run: { pid: 7, startTime: 12345678 },
    exitCode: null,
    note: null,
    checks: null,
  };

  it('has everything again after it was opened anew, each workspace its own', async () => {
    const path = join(root, 'db');
    let database = Database.open(path);
    database.putWorkspace('aa', { folder: '/a', checks: null });
    database.putWorkspace('ab', { folder: '/b', checks: 'npm test' });
    database.putBranches(
      'aa',
      new Map([
        ['b1', record],
        ['b2', { ...record, hint: '' }],
      ]),
    );
    database.putBranches('ab', new Map([['b1', record]]));
    database.updateBranch('aa', 'b1', { run: null, exitCode: 3 });
    database.removeBranches('aa', ['b2']);
    database.updateBranch('aa', 'b2', { exitCode: 1 });
    await database.close();
    database = Database.open(path);
    expect([...database.workspaces()]).toEqual([
      ['aa', { folder: '/a', checks: null }],
      ['ab', { folder: '/b', checks: 'npm test' }],
    ]);
    expect([...database.branches('aa')]).toEqual([['b1', { ...record, run: null, exitCode: 3 }]]);
    expect([...database.branches('ab')]).toEqual([['b1', record]]);
    expect(database.branch('aa', 'b2')).toBeUndefined();
    await database.close();
  });
});

describe('the audit log', () => {
  it('notes what was done and how it ended, for its owner only, newest last', async () => {
    const path = join(root, 'audit.jsonl');
    const audit = new Audit(path);
    await audit.around({ what: 'start', agent: 'shell' }, async () => 1);
    await expect(
      audit.around({ what: 'commit', branch: 'w.b' }, async () => {
        throw new BoughError('E_CONFLICT', 'No.');
      }),
    ).rejects.toThrow('No.');
    const lines = audit.last(10).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toEqual([
      { at: expect.any(String), what: 'start', agent: 'shell', outcome: 'ok' },
      { at: expect.any(String), what: 'commit', branch: 'w.b', outcome: 'E_CONFLICT' },
    ]);
    expect(audit.last(1)).toHaveLength(1);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(3);
  });
});
