// Review beyond one diff: all of a branch's changes at once, two siblings side by side, files ticked as reviewed, taken into
// a sibling and reverted; hunks accepted, reverted and taken from a sibling; the gutter; checks that pass and fail.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Branch } from '../../helper/protocol/rpc.js';
import type { Stage } from './harness.js';
import { branchNamed, branchesOf, runInside } from './helper-of.js';
import { rowSays, sessionRow, startShell } from './steps.js';
import { until } from './wait.js';

async function folderOf({ world }: Stage, { name }: Branch): Promise<string> {
  return until(`the folder of ${name}`, async () => (await branchNamed(world, name)).folder);
}

/** The last line with this text, from 1. */
function lineOf(content: string, text: string): number {
  const index = content.split('\n').findLastIndex((line) => line.includes(text));
  assert.ok(index >= 0, `"${text}" is in the file`);
  return index + 1;
}

export async function review(stage: Stage): Promise<void> {
  const { world, bench, picture } = stage;
  const session = await startShell(stage);
  await bench.command('Bough: Branch Agent Here');
  await bench.type('Branch Agent Here: How Many', '2');
  await bench.pick('Branch Agent Here: Agent', 'Shell');
  await bench.type('Branch Agent Here: branch 1 of 2', 'first way');
  await bench.type('Branch Agent Here: branch 2 of 2', 'second way');
  const [first, second] = await until('two branches', async () => {
    const made = (await branchesOf(world)).filter(({ parent }) => parent === session.id);
    return made.length === 2 && made[0] && made[1] ? ([made[0], made[1]] as const) : undefined;
  });
  await bench.expand(sessionRow(session));
  const firstRow = `Branch ${first.name},`;
  const secondRow = `Branch ${second.name},`;

  // Two hunks, far apart, and a new file in the first; another place of the same file in the second.
  await runInside(
    world,
    first,
    "sed -i 's/cents - tax/cents + tax/; $a // the end' src/money.js && echo added > added.txt && chmod 600 package.json",
  );
  await runInside(world, second, "sed -i '1i // the beginning' src/money.js");
  await until('the changes of the first', () => rowSays(stage, firstRow, /first way · running · 3 changes/));
  await until('the overlap in words', () => rowSays(stage, secondRow, /1 overlap/));
  const firstFolder = await folderOf(stage, first);
  const secondFolder = await folderOf(stage, second);
  const branchFile = path.join(firstFolder, 'src/money.js');
  const parentFile = path.join(await folderOf(stage, session), 'src/money.js');
  const branchText = () => readFileSync(branchFile, 'utf8');
  const parentText = () => readFileSync(parentFile, 'utf8');
  // The editor empties a file before it writes it.
  const branchIs = (right: (text: string) => boolean) => branchText().endsWith('\n') && right(branchText());

  // All at once.
  await bench.rowButton(firstRow, 'Open All Diffs', async () =>
    Boolean(await bench.tab(new RegExp(`^${first.name}: 3 changes`))),
  );
  await until('the added file and the mode', async () => {
    const text = await bench.editorText();
    return text.includes('added') && text.includes('"name": "orders"');
  });
  await picture('all-diffs');

  // Side by side.
  await bench.command('Bough: Compare with Sibling');
  await bench.pick('Compare with Sibling', first.name);
  await until('both siblings', async () => Boolean(await bench.tab(/↔/)));
  await picture('siblings');

  // Ticked as reviewed; the tick holds until the file changes.
  await bench.expand(firstRow);
  const added = `added.txt, added, in branch ${first.name}`;
  await bench.tickRow(added, () => rowSays(stage, added, /, reviewed$/));
  await bench.tickRow(`src/money.js, modified, in branch ${first.name}`, () =>
    rowSays(stage, `src/money.js, modified, in branch ${first.name}`, /, reviewed$/),
  );
  await until('the count', () => rowSays(stage, firstRow, /2 reviewed/));
  await picture('reviewed');
  await runInside(world, first, 'echo more >> added.txt');
  await until('the tick to be gone', () => rowSays(stage, added, new RegExp(`in branch ${first.name}$`)));
  await until('the other tick to stay', () => rowSays(stage, firstRow, /1 reviewed/));

  // Taken into the other.
  await bench.rowMenu(added, 'Take into Sibling', () => bench.quickInputShows(/^Take added\.txt/));
  await bench.pickAny(second.name);
  await until('the file in the sibling', () => existsSync(path.join(secondFolder, 'added.txt')));
  await until('both overlaps', () => rowSays(stage, secondRow, /2 overlaps/));

  // Reverted, after a question.
  await bench.rowMenu(added, 'Revert File', () => bench.dialog().isVisible());
  await bench.answer(/Revert added\.txt/, 'Revert');
  await until('the file to be gone', () => !existsSync(path.join(firstFolder, 'added.txt')));
  await until('fewer changes', () => rowSays(stage, firstRow, / 2 changes/));

  // Hunk by hunk. In the diff, by the light bulb: one is accepted into the parent.
  await bench.clickRow(`src/money.js, modified, in branch ${first.name}`, async () =>
    Boolean(await bench.tab(/money\.js \(.*, modified\)/)),
  );
  await until('the diff', async () => (await bench.editorText()).includes('return cents + tax(cents, rate);'));
  await bench.lightBulb(lineOf(branchText(), 'cents + tax'), `Accept Hunk into ${session.name}`, () =>
    parentText().includes('cents + tax'),
  );
  assert.ok(!parentText().includes('the end'), 'one hunk, not the file');
  assert.ok(branchText().includes('cents + tax') && branchText().includes('the end'), 'the branch keeps both');

  // In the file itself: the gutter marks the changed places, a CodeLens reverts the last one in the branch.
  await bench.editorButton('Open File', async () => Boolean(await bench.tab(/^money\.js(, |$)/)));
  await bench.goToLine(lineOf(branchText(), 'cents + tax'));
  await until('a mark in the gutter', async () => (await bench.gutterMarks()) > 0);
  await picture('gutter');
  await bench.codeLens(lineOf(branchText(), '// the end'), 'Revert Hunk', () =>
    branchIs((text) => !text.includes('the end')),
  );
  assert.ok(branchText().includes('cents + tax'), 'the other hunk stays');

  // And one comes from the sibling.
  await bench.command('Bough: Take Hunk from Sibling');
  await bench.pick(`Take Hunk into ${first.name}`, `${second.name}: line 1`);
  await until('the hunk of the sibling', () => branchIs((text) => text.startsWith('// the beginning\n')));
  assert.ok(branchText().includes('cents + tax'), 'and nothing else');

  // Checks: with the tests of money alone they pass in the first and fail in the second.
  for (const [branch, row, verdict] of [
    [first, firstRow, /checks passed/],
    [second, secondRow, /checks failed/],
  ] as const) {
    await bench.rowMenu(row, 'Run Checks', () => rowSays(stage, row, /checks (running|passed|failed)/));
    await until(`the verdict on ${branch.name}`, () => rowSays(stage, row, verdict));
  }
  await picture('checks');
}
