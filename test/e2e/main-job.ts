// The main job as a person does it: start, branch, review, commit, undo, discard, with a reload in between; and then the
// folder on disk, byte by byte.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Branch } from '../../helper/protocol/rpc.js';
import type { Stage } from './harness.js';
import { branchesOf, branchNamed, runInside } from './helper-of.js';
import { assertSame, differences, snapshot } from './snapshot.js';
import { startShell } from './steps.js';
import { until } from './wait.js';
import type { World } from './world.js';

const HINTS = ['constants first', 'smallest change', 'bottom up'];

/** Everything that a copy or a diff of text tends to lose, done by the shell in the branch; safe to run twice. */
const CHANGES = [
  'chmod +x README.md',
  'ln -sf ../README.md docs/readme-link',
  "printf 'one\\r\\ntwo\\r\\n' > data/crlf.txt",
  "printf '\\000\\001\\377\\376binary' > assets/blob.bin",
  'mv -f docs/CHANGES.md docs/HISTORY.md',
  // A link into nothing would end `node --test` before the first test.
  'ln -sfn HISTORY.md docs/latest.md',
  'rm -f src/receipt.js test/receipt.test.js',
  'sed -i /receipt/d src/index.js',
  'mkdir -p inbox/empty',
  "printf 'SHOP_NAME=corner\\nSHOP_TOKEN=changed\\n' > .env",
  'echo changes-are-made > made.txt',
];

/** Lies in the folder before the story begins, so that only a short line has to be typed. */
export function prepareMainJob({ sample }: World): void {
  writeFileSync(path.join(sample, 'change.sh'), `${CHANGES.join('\n')}\n`);
}

/** The result of CHANGES. */
function assertChanges(folder: string): void {
  const at = (file: string) => path.join(folder, file);
  assert.equal(lstatSync(at('README.md')).mode & 0o111, 0o111, 'the mode bit');
  assert.ok(lstatSync(at('docs/readme-link')).isSymbolicLink(), 'the symbolic link');
  assert.equal(readFileSync(at('data/crlf.txt'), 'latin1'), 'one\r\ntwo\r\n', 'line ends');
  assert.deepEqual(
    readFileSync(at('assets/blob.bin')),
    Buffer.from('\x00\x01\xff\xfebinary', 'latin1'),
    'a binary file',
  );
  assert.ok(existsSync(at('docs/HISTORY.md')) && !existsSync(at('docs/CHANGES.md')), 'the rename');
  assert.equal(readlinkSync(at('docs/latest.md')), 'HISTORY.md', 'the changed link');
  assert.ok(!existsSync(at('src/receipt.js')), 'the deletion');
  assert.ok(lstatSync(at('inbox/empty')).isDirectory(), 'the empty folder');
  assert.equal(readFileSync(at('.env'), 'utf8'), 'SHOP_NAME=corner\nSHOP_TOKEN=changed\n', 'an ignored file');
}

/** What the person wanted from the agents: the tests of the folder pass. */
function assertTestsPass({ sample, env }: World): void {
  const { status, stdout } = spawnSync('npm', ['test'], { cwd: sample, env, encoding: 'utf8', timeout: 120_000 });
  assert.equal(status, 0, `npm test in the folder: ${stdout}`);
}

const isSession = ({ parent }: Branch) => parent === 'base';

/** Start, branch, reload, review, and a commit to the parent branch. */
async function toTheParent({ world, bench, picture }: Stage): Promise<void> {
  const before = snapshot(world.sample);

  // 1. Start: an empty view says what to do; the palette starts a shell, its terminal opens.
  await bench.openBoughView();
  await until('the welcome text', async () =>
    /No agent works in a branch of this folder yet/.test((await bench.view().textContent()) ?? ''),
  );
  await picture('welcome');
  await bench.command('Bough: Start Agent');
  await bench.pick('Start Agent', 'Shell');
  await bench.rowLike(/^Session .*, running/);
  const session = await until('the session', async () => (await branchesOf(world)).at(0));
  const sessionRow = `Session ${session.name},`;

  // The shell in the branch's own terminal makes changes of every kind.
  await until('the prompt', async () => (await bench.terminalText()) !== '');
  await bench.typeInTerminal('bash change.sh', 'changes of the session', async () =>
    (await bench.rows()).some((label) => label.startsWith(sessionRow) && /\d+ changes/.test(label)),
  );
  await bench.expand(sessionRow);
  for (const label of [
    /^README\.md, modified, mode 0\d\d\d → 0\d\d\d,/,
    /^docs\/readme-link, added, link to \.\.\/README\.md,/,
    /^data\/crlf\.txt, added,/,
    /^assets\/blob\.bin, added, binary,/,
    /^docs\/HISTORY\.md, renamed, from docs\/CHANGES\.md,/,
    /^docs\/latest\.md, modified,/,
    /^src\/receipt\.js, deleted,/,
    /^inbox\/empty, added, folder,/,
    /^\.env, modified,/,
    /^made\.txt, added,/,
  ]) {
    await bench.rowLike(label);
  }
  assertSame('the folder itself must not change before a commit', before, snapshot(world.sample));

  // 2. Branch: three at once, each with a hint, worked on by the example agent.
  await bench.command('Bough: Branch Agent Here');
  await bench.type('Branch Agent Here: How Many', '3');
  await bench.pick('Branch Agent Here: Agent', 'Repair');
  for (const [index, hint] of HINTS.entries()) await bench.type(`Branch Agent Here: branch ${index + 1} of 3`, hint);
  await bench.expand(sessionRow);
  for (const hint of HINTS) await bench.rowLike(new RegExp(`^Branch .*, ${hint} · `));
  for (const hint of HINTS) await bench.rowLike(new RegExp(`^Branch .*, ${hint} · (finished|failed) `), 400_000);
  await picture('tree');

  // 3. A reload in between loses nothing.
  await bench.reload();
  await bench.openBoughView();
  await bench.rowLike(new RegExp(`^Session ${session.name}, running`));
  await bench.expand(sessionRow);
  for (const hint of HINTS) await bench.rowLike(new RegExp(`^Branch .*, ${hint} · (finished|failed) `));

  // 4. Review: the winner's diff and its checks.
  const winner = await until('the winner', async () => {
    // One is enough: on a machine that is very busy the time of an agent may run out.
    const finished = (await branchesOf(world)).filter(({ parent, exitCode }) => parent !== 'base' && exitCode === 0);
    return finished.find(({ hint }) => hint.startsWith('smallest change')) ?? finished.at(0);
  });
  await bench.rowLike(new RegExp(`^Branch ${winner.name}, .* · finished `));
  const winnerRow = `Branch ${winner.name},`;
  await bench.expand(winnerRow);
  await bench.rowLike(/^src\/money\.js, modified,/);
  await bench.clickRow(`src/money.js, modified, in branch ${winner.name}`, async () =>
    Boolean(await bench.tab(/money\.js \(.*, modified\)/)),
  );
  await until('both sides of the diff', async () => {
    const text = await bench.editorText();
    return text.includes('return cents - tax(cents, rate);') && text.includes('return cents + tax(cents, rate);');
  });
  await picture('diff');
  assert.equal((await branchesOf(world)).length, 4, 'looking changes nothing');

  // 5. Commit the winner to its parent by its button; the siblings are superseded and say so.
  await bench.rowButton(winnerRow, 'Commit to Parent', async () =>
    (await bench.rows()).some((label) => label.startsWith(winnerRow) && /\bcommitted\b/.test(label)),
  );
  for (const hint of HINTS.filter((each) => !winner.hint.startsWith(each)))
    await bench.rowLike(new RegExp(`^Branch .*, ${hint} · superseded`));
  await picture('committed');
  assertSame('a commit to the parent branch leaves the folder alone', before, snapshot(world.sample));
}

/** To the end: one more change, commit to the real folder, undo, discard. */
export async function mainJob(stage: Stage): Promise<void> {
  const { world, bench } = stage;
  const before = snapshot(world.sample);
  await toTheParent(stage);
  const session = await until('the session', async () => (await branchesOf(world)).find(isSession));
  const sessionRow = `Session ${session.name},`;

  // 6. One more change on top of what the winner brought.
  await runInside(world, session, 'echo by-hand >> made.txt');
  const { folder } = await branchNamed(world, session.name);
  assert.ok(folder !== undefined, 'the session is mounted');

  // 7. Commit the session to the folder. What is on disk now is exactly what was in the branch.
  await bench.openBoughView();
  await bench.rowLike(new RegExp(`^Session ${session.name}, running · .*changes`));
  const inBranch = snapshot(folder);
  await bench.rowButton(
    sessionRow,
    'Commit to Parent',
    async () =>
      differences(before, snapshot(world.sample)).length > 0 &&
      (await bench.rows()).some((label) => label.startsWith(sessionRow) && /\bcommitted\b/.test(label)),
  );
  assertSame('the folder after the commit is the branch', inBranch, snapshot(world.sample));
  assertChanges(world.sample);
  assert.match(readFileSync(path.join(world.sample, 'src/money.js'), 'utf8'), /return cents \+ tax\(cents, rate\);/);
  assert.ok(readFileSync(path.join(world.sample, 'made.txt'), 'utf8').includes('by-hand'));
  assertTestsPass(world);

  // 8. Undo: exactly as before.
  await bench.command('Bough: Undo Commit');
  await until('the folder as before the commit', async () => {
    if (await bench.quickPickOpen('Undo')) await bench.pick('Undo', session.name);
    return differences(before, snapshot(world.sample)).length === 0;
  });

  // 9. Discard: asks, then nothing stays.
  await bench.rowButton(sessionRow, 'Discard Branch', () => bench.dialog().isVisible());
  await bench.answer(/cannot be undone/, 'Discard');
  await until('no branch', async () => (await branchesOf(world)).length === 0);
  await until('an empty view', async () => (await bench.rows()).length === 0);
  assertSame('discarding leaves the folder alone', before, snapshot(world.sample));
}

/** A file of a branch edited in the branch's own folder, opened beside the real one. */
export async function workspaceFolder(stage: Stage): Promise<void> {
  const { world, bench, picture } = stage;
  const before = snapshot(world.sample);
  const session = await startShell(stage);
  await runInside(world, session, 'echo changes-are-made > made.txt');
  await bench.command('Bough: Open Branch as Workspace Folder');
  const { folder } = await branchNamed(world, session.name);
  assert.ok(folder !== undefined, 'the session is mounted');
  // In a browser the window loads again with the two folders.
  await until('the branch folder in the explorer', async () => {
    // A click on the icon of a view that is open would close it.
    const explorer = bench.page.locator('.explorer-folders-view');
    if (!(await explorer.isVisible())) {
      await bench.page.locator('.activitybar a.action-label[aria-label^="Explorer"]').first().click({ timeout: 5_000 });
      await explorer.waitFor({ state: 'visible', timeout: 10_000 });
    }
    const roots = await bench.page.locator('.explorer-folders-view .monaco-list-row[aria-level="1"]').allTextContents();
    return roots.some((text) => text.includes(`${session.name} (branch)`));
  });
  await bench.openFile('made.txt', /^made\.txt/);
  await until('the text of made.txt', async () => (await bench.editorText()).includes('changes-are-made'));
  await until('the edit on disk', async () => {
    const text = () => readFileSync(path.join(folder, 'made.txt'), 'utf8');
    if (text().includes('by-hand')) return true;
    await bench.cursorToEnd();
    if (!(await bench.editorText()).includes('by-hand')) await bench.page.keyboard.type('by-hand');
    await bench.page.keyboard.press('Control+S');
    return until('the save', () => text().includes('by-hand'), 10_000).catch(() => false);
  });
  await picture('folders');
  assertSame('an edit in the branch leaves the folder alone', before, snapshot(world.sample));
}
