import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyHome, gitConfig, hasState, makeHome } from './home.js';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'bough-home-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function file(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

describe('HOME of a branch', () => {
  it('has the agent’s settings and credentials, not its history, and nothing else of the person', async () => {
    file('person/.agent/settings.json', '{}');
    file('person/.agent/.credentials', 'key');
    file('person/.agent/projects/other/talk.jsonl', 'private');
    file('person/.agent.json', '{"a":1}');
    file('person/.ssh/id', 'secret');
    const home = join(root, 'first');
    await makeHome(home, join(root, 'person'), ['.agent', '.agent.json', '.missing'], '/work/space', null);
    expect(readFileSync(join(home, '.agent/.credentials'), 'utf8')).toBe('key');
    expect(readFileSync(join(home, '.agent.json'), 'utf8')).toBe('{"a":1}');
    expect(existsSync(join(home, '.agent/projects'))).toBe(false);
    expect(existsSync(join(home, '.ssh'))).toBe(false);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(await hasState(home, ['.agent'])).toBe(true);
    expect(await hasState(home, ['.missing'])).toBe(false);
  });

  it('of a child is what the parent has now, with links as links, without caches', async () => {
    file('parent/.agent/projects/this/talk.jsonl', 'so far');
    file('parent/.cache/big', 'x');
    file('parent/.npm/big', 'x');
    symlinkSync('/nowhere', join(root, 'parent', 'link'));
    execFileSync('mkfifo', [join(root, 'parent', 'fifo')]);
    await copyHome(join(root, 'child'), join(root, 'parent'));
    expect(readFileSync(join(root, 'child/.agent/projects/this/talk.jsonl'), 'utf8')).toBe('so far');
    expect(readlinkSync(join(root, 'child/link'))).toBe('/nowhere');
    for (const name of ['.cache', '.npm', 'fifo']) expect(existsSync(join(root, 'child', name))).toBe(false);
    await copyHome(join(root, 'orphan'), join(root, 'gone'));
    expect(existsSync(join(root, 'orphan'))).toBe(true);
  });

  it('tells git who commits, whatever the name holds', () => {
    const name = 'Ada "the #1" \\ Lovelace';
    file('config', gitConfig('/with space/and"quote', { name, email: 'ada@example.org' }));
    const get = (key: string) =>
      execFileSync('git', ['config', '--file', join(root, 'config'), '--get', key], { encoding: 'utf8' }).slice(0, -1);
    expect(get('user.name')).toBe(name);
    expect(get('user.email')).toBe('ada@example.org');
    expect(get('safe.directory')).toBe('/with space/and"quote');
  });
});
