import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changedBy, commitToGit, gitIdentity, requireRepository } from './git-commit.js';

let folder = '';
const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
const write = (path: string, text: string) => writeFileSync(join(folder, path), text);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bough-git-test-'));
  git('init', '--quiet');
  git('config', 'user.name', 'Ada');
  git('config', 'user.email', 'ada@example.org');
  git('config', 'commit.gpgsign', 'false');
  write('.gitignore', 'ignored/\n');
  for (const name of ['a.txt', 'b.txt', 'old.txt', 'gone.txt']) write(name, 'before\n');
  git('add', '--all');
  git('commit', '--quiet', '-m', 'begin');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('commitToGit', () => {
  it('commits the given paths and leaves the rest of the work tree and of the index alone', async () => {
    write('a.txt', 'after\n');
    write('b.txt', 'the person works here\n');
    git('add', 'b.txt');
    write('other.txt', 'untracked\n');
    const { commit, problem } = await commitToGit(folder, ['a.txt'], 'Fix a', 'try-1');
    expect(problem).toBeNull();
    expect(commit).toBe(git('rev-parse', 'HEAD').trim());
    expect(git('show', '--name-only', '--format=%B').trim()).toBe('Fix a\n\nBough-Branch: try-1\n\n\na.txt');
    expect(git('status', '--porcelain')).toBe('M  b.txt\n?? other.txt\n');
  });

  it('knows added, deleted and renamed paths, whole folders, and names that git has to quote', async () => {
    mkdirSync(join(folder, 'new folder'));
    write('new folder/x', '1');
    write('*', 'a star is no pattern');
    write('li\nne', '2');
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff])]), '3');
    rmSync(join(folder, 'gone.txt'));
    execFileSync('mv', ['old.txt', 'moved.txt'], { cwd: folder });
    mkdirSync(join(folder, 'ignored'));
    write('ignored/cache', '4');
    write('a.txt', 'not in this commit\n');
    const paths = [
      'new folder',
      '*',
      'li\nne',
      { b64: 'Zv8=' },
      'gone.txt',
      'old.txt',
      'moved.txt',
      'ignored',
      'ignored/cache',
    ];
    expect((await commitToGit(folder, paths, 'All kinds', 'b')).problem).toBeNull();
    const names = git('show', '--name-status', '--no-renames', '--format=').trim().split('\n').sort();
    expect(names).toEqual(
      ['A\t"f\\377"', 'A\t"li\\nne"', 'A\t*', 'A\tmoved.txt', 'A\tnew folder/x', 'D\tgone.txt', 'D\told.txt'].sort(),
    );
    expect(git('status', '--porcelain')).toBe(' M a.txt\n');
  });

  it('works from a folder below the top of the repository', async () => {
    mkdirSync(join(folder, 'sub'));
    write('sub/in.txt', '1');
    write('a.txt', 'out of the workspace\n');
    expect((await commitToGit(join(folder, 'sub'), ['in.txt'], 'Sub', 'b')).problem).toBeNull();
    expect(git('show', '--name-only', '--format=').trim()).toBe('sub/in.txt');
  });

  it('says what git said when it refuses, and when there is nothing to do', async () => {
    expect((await commitToGit(folder, ['a.txt'], 'Nothing', 'b')).problem).toContain('nothing to commit');
    write('a.txt', 'after\n');
    writeFileSync(join(folder, '.git', 'hooks', 'pre-commit'), '#!/bin/sh\necho not today >&2\nexit 1\n', {
      mode: 0o755,
    });
    const { commit, problem } = await commitToGit(folder, ['a.txt'], 'Refused', 'b');
    expect(commit).toBeNull();
    expect(problem).toContain('not today');
  });
});

describe('before a commit', () => {
  it('a folder without repository is refused', async () => {
    const bare = mkdtempSync(join(tmpdir(), 'bough-no-git-'));
    try {
      await expect(requireRepository(bare)).rejects.toMatchObject({ code: 'E_NO_GIT' });
      await expect(requireRepository(folder)).resolves.toBeUndefined();
    } finally {
      rmSync(bare, { recursive: true, force: true });
    }
  });

  it('the identity of the folder is known', async () => {
    expect(await gitIdentity(folder)).toEqual({ name: 'Ada', email: 'ada@example.org' });
  });

  it('only what lies at or below a committed path is git’s to commit', () => {
    const from = (...names: string[]) => names.map((name) => Buffer.from(name));
    expect(changedBy(from('p/a', 'p/ab', 'p/b/c/d', 'a'), ['a', 'b'], 'p').map(String)).toEqual(['p/a', 'p/b/c/d']);
  });
});
