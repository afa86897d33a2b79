// Review beyond one diff: two siblings side by side, a file taken from one into the other, a file reverted, a hunk accepted
// and a hunk reverted, checks that pass and fail.
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

  // Two hunks, far apart, and a new file in the first; the repaired tax in the second.
  await runInside(
    world,
    first,
    "sed -i 's/cents - tax/cents + tax/; $a // the end' src/money.js && echo added > added.txt && chmod 600 package.json",
  );
  await until('the changes of the first', () => rowSays(stage, firstRow, /first way · running · 3 changes/));

  // Side by side.
  await bench.command('Bough: Compare with Sibling');
  await bench.pick('Compare with Sibling', first.name);
  await until('both siblings', async () => Boolean(await bench.tab(/↔/)));
  await picture('siblings');

  // Taken into the other.
  await bench.expand(firstRow);
  await bench.rowMenu(`added.txt, added, in branch ${first.name}`, 'Take into Sibling', () =>
    bench.quickInputShows(/^Take added\.txt/),
  );
  await bench.pickAny(second.name);
  const secondFolder = await folderOf(stage, second);
  await until('the file in the sibling', () => existsSync(path.join(secondFolder, 'added.txt')));
  await until('the overlap in words', () => rowSays(stage, secondRow, /1 also changed by a sibling/));

  // Reverted, after a question.
  await bench.rowMenu(`added.txt, added, in branch ${first.name}`, 'Revert File', () => bench.dialog().isVisible());
  await bench.answer(/Revert added\.txt/, 'Revert');
  const firstFolder = await folderOf(stage, first);
  await until('the file to be gone', () => !existsSync(path.join(firstFolder, 'added.txt')));
  await until('fewer changes', () => rowSays(stage, firstRow, / 2 changes/));

  // Hunk by hunk: the first is accepted into the parent, the last is reverted in the branch.
  await bench.clickRow(`src/money.js, modified, in branch ${first.name}`, async () =>
    Boolean(await bench.tab(/money\.js \(.*, modified\)/)),
  );
  await until('the diff', async () => (await bench.editorText()).includes('return cents + tax(cents, rate);'));
  const parentFile = path.join(await folderOf(stage, session), 'src/money.js');
  const branchFile = path.join(firstFolder, 'src/money.js');
  await bench.onLine('return cents + tax(cents, rate);', 'Bough: Accept Hunk', () =>
    readFileSync(parentFile, 'utf8').includes('cents + tax'),
  );
  assert.ok(!readFileSync(parentFile, 'utf8').includes('the end'), 'one hunk, not the file');
  await bench.onLine('// the end', 'Bough: Revert Hunk', () => !readFileSync(branchFile, 'utf8').includes('the end'));
  assert.ok(readFileSync(branchFile, 'utf8').includes('cents + tax'), 'the other hunk stays');

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
