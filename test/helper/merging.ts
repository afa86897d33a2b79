// Commits over the person's own edits: merged line by line where that is possible, refused with every conflict listed where not;
// the optional git commit; rebase.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BoughError, errorCode } from '../../helper/protocol/failure.js';
import type { Checks } from '../harness.js';
import { codeOf, ensure, equal, World } from './world.js';

const text = Array.from({ length: 20 }, (_, index) => `line ${index}\n`).join('');

/** Edits in place, as most agents write; `sed -i` puts a new file in the place of the old one. */
const edit = 'edit() { for f in "$2" $3; do sed "$1" "$f" > /tmp/edited && cat /tmp/edited > "$f"; done; }; ';

export async function merging(checks: Checks): Promise<void> {
  await checks.check('other lines of one file: merged; the same lines: a conflict that can be settled', threeWay);
  await checks.check('a file that was replaced instead of edited: nobody’s text is lost', replacing);
  await checks.check('rebase merges, too, and revives a superseded branch', rebasing);
  await checks.check('a git commit of exactly what was committed', gitOption);
}

async function threeWay(): Promise<void> {
  const world = new World('merge');
  try {
    const folder = world.workspace('ws', { 'a.txt': text, 'b.txt': text, 'c.bin': 'a\0b' });
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, `${edit} edit "s/line 2$/branch 2/" a.txt; echo branch > new.txt`);
    writeFileSync(join(folder, 'a.txt'), text.replace('line 15\n', 'person 15\n'));
    const { merged } = await client.request('bough/commit', { branch: branch.id });
    equal(merged, ['a.txt'], 'what was merged');
    const both = text.replace('line 2\n', 'branch 2\n').replace('line 15\n', 'person 15\n');
    equal(readFileSync(join(folder, 'a.txt'), 'utf8'), both, 'the merged file');

    const second = await world.start(client, folder);
    await world.sh(
      client,
      second,
      `${edit} edit "s/line 3$/branch 3/" a.txt b.txt; printf "x\\0y" > c.bin; echo more > other.txt`,
    );
    writeFileSync(join(folder, 'a.txt'), both.replace('line 3\n', 'person 3\n'));
    writeFileSync(join(folder, 'b.txt'), text.replace('line 18\n', 'person 18\n'));
    writeFileSync(join(folder, 'c.bin'), 'z\0z');
    const refused = await client.request('bough/commit', { branch: second.id }).then(
      () => null,
      (error: unknown) => error,
    );
    if (!(refused instanceof BoughError)) throw new Error(`expected a conflict, got ${JSON.stringify(refused)}`);
    equal(refused.code, 'E_CONFLICT', 'the code');
    equal(refused.detail.conflicts?.map(({ path }) => path).sort(), ['a.txt', 'c.bin'], 'what cannot be merged');
    equal(readFileSync(join(folder, 'b.txt'), 'utf8'), text.replace('line 18\n', 'person 18\n'), 'nothing was touched');
    equal((await client.request('bough/conflicts', { branch: second.id })).conflicts.length, 3, 'conflicts now');
    const data = Buffer.from('settled\n').toString('base64');
    await client.request('bough/resolve', { branch: second.id, path: 'a.txt', take: 'content', data });
    await client.request('bough/resolve', { branch: second.id, path: 'c.bin', take: 'theirs' });
    equal(
      (await client.request('bough/commit', { branch: second.id })).merged,
      ['b.txt'],
      'merged after the rest was settled',
    );
    const now = (name: string) => readFileSync(join(folder, name), 'utf8');
    equal([now('a.txt'), now('c.bin'), now('other.txt')], ['settled\n', 'z\0z', 'more\n'], 'the settled files');
    equal(now('b.txt'), text.replace('line 3\n', 'branch 3\n').replace('line 18\n', 'person 18\n'), 'the merged one');
  } finally {
    await world.end();
  }
}

/** Replaced instead of edited: merged all the same where the old text is known, and never at the cost of the person's edit. */
async function replacing(): Promise<void> {
  const world = new World('replace');
  try {
    const folder = world.workspace('ws', { 'a.txt': text, 'b.txt': text });
    const client = await world.client();
    const branch = await world.start(client, folder);
    await world.sh(client, branch, 'sed -i "s/line 2$/branch 2/" a.txt; rm b.txt; echo anew > b.txt');
    const mine = text.replace('line 15\n', 'person 15\n');
    for (const name of ['a.txt', 'b.txt']) writeFileSync(join(folder, name), mine);
    const code = await client.request('bough/commit', { branch: branch.id }).then(
      () => 'committed',
      (error: unknown) => errorCode(error),
    );
    const now = (name: string) => readFileSync(join(folder, name), 'utf8');
    equal(code, 'E_CONFLICT', 'b.txt was written anew on both sides');
    equal([now('a.txt'), now('b.txt')], [mine, mine], 'the person has what they wrote');
    await client.request('bough/resolve', { branch: branch.id, path: 'b.txt', take: 'theirs' });
    const second = await client.request('bough/commit', { branch: branch.id, paths: ['a.txt'] }).then(
      () => 'committed',
      (error: unknown) => errorCode(error),
    );
    const both = mine.replace('line 2\n', 'branch 2\n');
    equal([second, now('a.txt')], second === 'committed' ? ['committed', both] : ['E_CONFLICT', mine], 'a.txt');
  } finally {
    await world.end();
  }
}

async function rebasing(): Promise<void> {
  const world = new World('rebase');
  try {
    const folder = world.workspace('ws', { 'a.txt': text });
    const client = await world.client();
    const parent = await world.start(client, folder);
    const { branches } = await client.request('bough/branch', { branch: parent.id, count: 2 });
    const [winner, loser] = branches;
    if (!winner || !loser) throw new Error('two children');
    await world.sh(client, winner, `${edit} edit "s/line 1$/winner 1/" a.txt`);
    await world.sh(client, loser, `${edit} edit "s/line 12$/loser 12/" a.txt`);
    await client.request('bough/commit', { branch: winner.id });
    equal(await codeOf(client.request('bough/commit', { branch: loser.id })), 'E_STATE', 'a superseded branch');
    const { merged } = await client.request('bough/rebase', { branch: loser.id });
    equal(merged, ['a.txt'], 'what the rebase merged');
    await client.request('bough/commit', { branch: loser.id });
    const expected = text.replace('line 1\n', 'winner 1\n').replace('line 12\n', 'loser 12\n');
    equal(await world.sh(client, parent, 'cat a.txt'), expected, 'both are in the parent');
  } finally {
    await world.end();
  }
}

async function gitOption(): Promise<void> {
  const world = new World('git');
  try {
    const folder = world.workspace('ws', {
      'a.txt': 'one\n',
      'b.txt': 'two\n',
      'old.txt': 'three\n',
      '.gitignore': 'out/\n',
    });
    const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8', env: world.env });
    for (const args of [
      ['init', '--quiet'],
      ['config', 'user.name', 'Ada'],
      ['config', 'user.email', 'ada@example.org'],
      ['add', '--all'],
      ['commit', '--quiet', '-m', 'begin'],
    ]) {
      git(...args);
    }
    writeFileSync(join(folder, 'b.txt'), 'the person works here\n');
    const client = await world.client();
    const branch = await world.start(client, folder, 'sleep 100000', { name: 'fix one' });
    await world.sh(
      client,
      branch,
      'git status --short > /dev/null; echo more >> a.txt; mkdir out; echo x > out/x; mv old.txt new.txt',
    );
    const result = await client.request('bough/commit', { branch: branch.id, git: { message: 'Fix one thing' } });
    equal([result.gitProblem, result.gitCommit], [null, git('rev-parse', 'HEAD').trim()], 'the git commit');
    equal(git('log', '-1', '--format=%B').trim(), 'Fix one thing\n\nBough-Branch: fix one', 'its message');
    const names = git('show', '--no-renames', '--name-status', '--format=').trim().split('\n').sort();
    equal(names, ['A\tnew.txt', 'D\told.txt', 'M\ta.txt'], 'its paths');
    equal(git('status', '--porcelain').trim(), 'M b.txt', 'what the person does is not in it');
    ensure(readFileSync(join(folder, 'out', 'x'), 'utf8') === 'x\n', 'an ignored file is committed to the folder');

    const bare = world.workspace('bare', { 'a.txt': 'one\n' });
    const other = await world.start(client, bare);
    const refused = client.request('bough/commit', { branch: other.id, git: { message: 'no' } });
    equal(await codeOf(refused), 'E_NO_GIT', 'a commit to git where there is none');
  } finally {
    await world.end();
  }
}
