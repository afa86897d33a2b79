// branch, checks, rename, stop, checkpoint, restore, rebase: siblings. Steps of main.ts; they leave `session` with the
// superseded `second` below it.
import assert from 'node:assert/strict';

import type { Branch } from '../../helper/protocol/rpc.js';
import type { Command } from './command.js';
import type { Suite } from './suite.js';

/** The three repairs of the sample. */
const repairs = [
  "sed -i 's/return cents - tax/return cents + tax/' src/cents.js",
  "sed -i 's/const first = number \\* size/const first = (number - 1) * size/' src/pages.js",
  "sed -i 's/a.start <= b.end/a.start < b.end/' src/schedule.js",
  // The session renamed money.js, so that who imports it has to follow.
  "sed -i 's/money.js/cents.js/' src/index.js src/receipt.js test/money.test.js",
].join(' && ');

export async function branchTests(suite: Suite, bough: Command): Promise<void> {
  const list = async () => ((await bough.json('ls')) as unknown as { branches: Branch[] }).branches;
  const find = async (name: string) => (await list()).find((branch) => branch.name === name);

  await suite.test('branch makes siblings, each with its hint and the files of that instant', async () => {
    const { branches, pauseUs } = (await bough.json(
      ...['branch', 'session', '--agent', 'shell', '--hint', 'one way', '--hint', 'another way'],
    )) as unknown as { branches: Branch[]; pauseUs: number };
    assert.deepEqual(
      branches.map(({ hint }) => hint),
      ['one way', 'another way'],
    );
    assert.ok(pauseUs > 0);
    const [first, second] = branches;
    assert.ok(first && second);
    await bough.json('rename', first.id, 'first');
    await bough.json('rename', second.id, 'second');
    await bough.exec('session', 'echo later > later.txt');
    for (const name of ['first', 'second']) {
      assert.match(await bough.text('show', name, 'README.md'), /more\n$/);
      await bough.failure('E_NO_PATH', 'show', name, 'later.txt');
    }
    assert.match(await bough.text('ls'), /^ {4}first +\S+ +running +shell +0 +- +one way$/m);
  });

  await suite.test('names and ids may be shortened until they could mean two', async () => {
    await bough.failure('E_AMBIGUOUS', 'diff');
    const { branch } = (await bough.json('mount', 'fir')) as unknown as { branch: string };
    assert.equal(branch, (await find('first'))?.id);
  });

  await suite.test('siblings do not see each other, and can be compared', async () => {
    await bough.exec('first', repairs);
    await bough.exec('second', "echo second > only-here.txt && sed -i 's/# orders/# Orders/' README.md");
    await bough.failure('E_NO_PATH', 'show', 'first', 'only-here.txt');
    const against = await bough.text('diff', 'second', '--against', 'first');
    assert.match(against, /only-here\.txt/);
    assert.match(against, /src\/pages\.js/);
  });

  await suite.test('checks pass in one and fail in the other', async () => {
    const passed = await bough.text('checks', 'first', '--command', 'npm test');
    assert.match(passed, /^passed {2}first /m);
    const failed = await bough.run('checks', 'second', '--json');
    assert.equal(failed.status, 1);
    assert.match(failed.stdout, /"state":"failed"/);
    const both = await bough.run('checks', 'first', 'second');
    assert.equal(both.status, 1);
    assert.match(both.stdout, /^failed {2}second .*\n(.*\n)*--- second/m);
    assert.equal((await find('first'))?.checks?.state, 'passed');
  });

  await suite.test('a checkpoint keeps the files, and restore branches from it', async () => {
    const made = (await bough.json('checkpoint', 'first', '--name', 'good')) as unknown as { checkpoint: Branch };
    assert.equal(made.checkpoint.agent, 'none');
    assert.equal(made.checkpoint.person, 'stopped');
    await bough.exec('first', 'echo broken > src/pages.js');
    const text = await bough.text('restore', 'good', '--name', 'again');
    assert.match(text, /^Restored good .* as again .*, with shell\.$/m);
    assert.match(await bough.text('show', 'again', 'src/pages.js'), /\(number - 1\) \* size/);
    const { branch } = (await bough.json('stop', 'again')) as unknown as { branch: Branch };
    assert.notEqual(branch.person, 'running');
    await bough.json('abort', 'good', '--recursive');
    assert.equal(await find('again'), undefined);
    await bough.exec('first', 'git checkout --quiet src/pages.js');
    await bough.exec('first', repairs);
  });

  await suite.test('the first commit wins: into the parent, the sibling is superseded', async () => {
    const session = await find('session');
    const result = await bough.json('commit', 'first');
    assert.equal(result['into'], session?.id);
    assert.equal((await find('first'))?.fileState, 'committed');
    assert.equal((await find('second'))?.fileState, 'superseded');
    await bough.failure('E_STATE', 'commit', 'second');
    assert.match(await bough.text('show', 'session', 'src/pages.js'), /\(number - 1\) \* size/);
    assert.equal(await bough.text('show', 'session', 'later.txt'), 'later\n', 'what the parent did meanwhile stays');
  });

  await suite.test('rebase revives the superseded one on top of that', async () => {
    await bough.json('rebase', 'second');
    assert.equal((await find('second'))?.fileState, 'live');
    assert.match(await bough.text('show', 'second', 'src/pages.js'), /\(number - 1\) \* size/);
    assert.equal(await bough.text('show', 'second', 'only-here.txt'), 'second\n');
  });
}
