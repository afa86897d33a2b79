// start, exec, diff, show, mount: one branch and its files. Steps of main.ts; they leave the branch `session`.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { pathText } from '../../helper/cli/path-text.js';
import type { Change } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { differences, snapshotOf } from '../demo/tree.js';
import type { Command } from './command.js';
import { runProgram } from './run-program.js';
import type { Suite } from './suite.js';

export async function fileTests(suite: Suite, bough: Command): Promise<void> {
  const { folder } = bough.world;
  const before = snapshotOf(folder);

  await suite.test('start makes a branch with a shell, ls shows it', async () => {
    const { branch } = (await bough.json('start', 'shell', '--name', 'session')) as unknown as { branch: Branch };
    assert.equal(branch.name, 'session');
    assert.match(await bough.text('ls'), /^ {2}session +\S+ +running +shell +0 /m);
    assert.match(
      await bough.text('ls', '--folder', join(folder, 'src')),
      /session/,
      'also asked from below the folder',
    );
  });

  await suite.test('exec runs in the branch, with its output and its status', async () => {
    const ran = await bough.run('exec', 'session', '--', 'sh', '-c', 'pwd; echo problem >&2; exit 7');
    assert.deepEqual([ran.status, ran.stdout, ran.stderr], [7, `${folder}\n`, 'problem\n']);
    const answer = await bough.run('exec', '--branch', 'sess', '--json', '--', 'echo', 'hi');
    assert.match(answer.stdout, /"exitCode":0,"stdout":"hi\\n"/);
    assert.equal(answer.status, 0);
  });

  await suite.test('a branch has all that the folder has', async () => {
    const seen = await bough.exec(
      'session',
      'cat .env docs/latest.md; ls inbox node_modules/@types; scripts/report.sh',
    );
    assert.match(seen, /SHOP_NAME=corner/);
    assert.match(seen, /# Changes/);
    assert.match(seen, /plural-word/);
    assert.match(seen, /2 orders/);
    assert.equal(await bough.exec('session', 'git status --porcelain'), '');
    assert.match(await bough.exec('session', 'git log --oneline'), /Pages of a list/);
  });

  await suite.test('what is done in a branch stays there', async () => {
    await bough.exec(
      'session',
      'echo more >> README.md; chmod 600 src/index.js; rm docs/latest.md; mkdir -p new/empty; printf "a\\0b" > new/bin; mv src/money.js src/cents.js',
    );
    assert.deepEqual(differences(before, snapshotOf(folder)), []);
  });

  await suite.test('diff shows every kind of change', async () => {
    const { changes, total } = (await bough.json('diff', 'session')) as unknown as { changes: Change[]; total: number };
    assert.equal(total, changes.length);
    const kinds = Object.fromEntries(changes.map(({ path, kind }) => [pathText(path), kind]));
    assert.equal(kinds['README.md'], 'modified');
    assert.equal(kinds['docs/latest.md'], 'deleted');
    assert.equal(kinds['new/empty'], 'added');
    assert.equal(kinds['new/bin'], 'added');
    assert.equal(kinds['src/cents.js'], 'renamed');
    const mode = changes.find(({ path }) => path === 'src/index.js');
    assert.deepEqual(mode?.what, ['mode']);
    const text = await bough.text('diff', 'session');
    assert.match(text, /^M {2}src\/index\.js +mode 644 → 600$/m);
    assert.match(text, /^A {2}new\/bin +3 bytes, binary$/m);
    assert.match(text, /^R {2}src\/money\.js → src\/cents\.js /m);
    assert.match(await bough.text('diff', 'session', '--patch'), /^\+more$/m);
  });

  await suite.test('show prints a file as the branch, its point and its parent have it', async () => {
    assert.match(await bough.text('show', 'session', 'README.md'), /\nmore\n$/);
    const original = readFileSync(join(folder, 'README.md'), 'utf8');
    assert.equal(await bough.text('show', 'session', './README.md', '--side', 'point'), original);
    assert.equal(await bough.text('show', '-b', 'session', 'README.md', '--side', 'parent'), original);
    const { data } = await bough.json('show', 'session', 'assets/logo.png');
    assert.ok(Buffer.from(String(data), 'base64').equals(readFileSync(join(folder, 'assets', 'logo.png'))));
    assert.equal(await bough.text('show', 'session', 'docs/latest.md', '--side', 'point'), '→ CHANGES.md\n');
    assert.equal(await bough.text('show', 'session', 'new'), 'bin\nempty/\n');
    await bough.failure('E_NO_PATH', 'show', 'session', 'docs/latest.md');
    await bough.failure('E_USAGE', 'show', 'session', '../secret');
    await bough.failure('E_USAGE', 'diff', 'session', '--patch', '--against', 'session');
  });

  await suite.test(
    'names with newlines and of bytes that are no text are shown on one line, and may be given back',
    async () => {
      const make = String.raw`printf one > "$(printf 'new\nline')"; printf two > "$(printf 'bytes-\377')"; printf three > -rf`;
      await bough.exec('session', make);
      const listed = (await bough.text('diff', 'session')).split('\n').filter((line) => /bytes-|line|-rf/.test(line));
      assert.deepEqual(listed.map((line) => line.split(/ {2,}/)[1]).sort(), ['"bytes-\\377"', '"new\\nline"', '-rf']);
      assert.equal(await bough.text('show', 'session', '"new\\nline"'), 'one');
      assert.equal(await bough.text('show', 'session', '"bytes-\\377"'), 'two');
      assert.match(await bough.text('show', 'session', '.'), /^"bytes-\\377"$/m);
      await bough.failure('E_NO_PATH', 'show', 'session', '"bytes-\\376"');
      const { paths } = await bough.json('commit', 'session', '--path', '"bytes-\\377"', '--path=-rf');
      assert.equal(paths, 2);
      const names = readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('latin1'));
      assert.ok(names.includes('bytes-\xff') && names.includes('-rf') && !names.includes('new\nline'));
      await bough.json('undo');
      await bough.exec('session', String.raw`rm -- -rf "$(printf 'new\nline')" "$(printf 'bytes-\377')"`);
      assert.deepEqual(differences(before, snapshotOf(folder)), []);
    },
  );

  await suite.test('mount gives a folder that every program can use', async () => {
    const mounted = (await bough.text('mount', 'session')).trimEnd();
    assert.ok(readFileSync(join(mounted, 'README.md'), 'utf8').endsWith('more\n'));
    assert.deepEqual(readdirSync(join(mounted, 'new')).sort(), ['bin', 'empty']);
    assert.ok(!existsSync(join(mounted, 'docs', 'latest.md')));
    const grep = await runProgram(['grep', '-rl', 'cents', 'src'], { cwd: mounted });
    assert.match(grep.stdout, /src\/cents\.js/);
    const listed = await bough.runIn(mounted, 'ls');
    assert.match(listed.stdout, /session/, 'asked from inside a branch, the folder it is of is meant');
  });

  await suite.test('an agent of your own gets its hint', async () => {
    const { branch } = (await bough.json(
      ...['start', 'mine', '--name', 'own', '--hint', 'a "quoted" hint', '--', 'sh', '-c'],
      'printf %s "$1" > hint.txt; printf %s "$BOUGH_HINT" >> hint.txt; exit 4',
      ...['sh', '{hint}'],
    )) as unknown as { branch: Branch };
    const ended = await bough.run('attach', branch.id);
    assert.equal(ended.status, 4, ended.stdout + ended.stderr);
    assert.equal(await bough.text('show', 'own', 'hint.txt'), 'a "quoted" hinta "quoted" hint');
    assert.match(await bough.text('ls'), /^ {2}own +\S+ +\S+ \(4\) +mine /m);
    await bough.json('abort', 'own');
  });
}
