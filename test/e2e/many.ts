// Much at once: thousands of changed files, and two windows on one folder.
import assert from 'node:assert/strict';
import type { Stage } from './harness.js';
import { runInside } from './helper-of.js';
import { rowSays, sessionRow, startShell } from './steps.js';
import { until } from './wait.js';

const FILES = 5000;

/** The tree grows by pages, the diff of all is capped and says so, and the editor answers all the time. */
export async function manyChanges(stage: Stage): Promise<void> {
  const { world, bench, picture } = stage;
  const session = await startShell(stage);
  const row = sessionRow(session);
  await runInside(world, session, `mkdir many && cd many && for n in $(seq ${FILES}); do echo $n > file-$n.txt; done`);
  await until('the count', () => rowSays(stage, row, new RegExp(`${FILES + 1} changes|${FILES} changes`)));
  await bench.expand(row);
  await bench.rowLike(/^many\/file-\d+\.txt, added,/);
  await bench.scrollToRow(/^Show more \(200 of \d+ changes shown\)/);
  await bench.clickRow(
    'Show more',
    async () => !(await bench.rows()).some((label) => label.startsWith('Show more (200')),
  );
  await bench.scrollToRow(/^Show more \(400 of \d+ changes shown\)/);
  await picture('paged');
  await bench.collapse(row);
  await bench.command('Bough: Open All Diffs');
  await until('the diffs', async () => Boolean(await bench.tab(new RegExp(`${session.name}: \\d+ changes`))));
  await until('a diff on the screen', async () => /\d+/.test(await bench.editorText()));
  // It still answers.
  await bench.command('Bough: Rename Branch');
  await bench.type(`Rename ${session.name}`, 'much');
  await bench.rowLike(/^Session much, running/);
}

/** What is done in one window shows in the other; a terminal shows in both. */
export async function twoWindows(stage: Stage): Promise<void> {
  const { world, bench, newWindow } = stage;
  const session = await startShell(stage);
  const other = await newWindow();
  await other.openBoughView();
  await other.rowLike(new RegExp(`^Session ${session.name}, running`));
  await runInside(world, session, 'echo one > one.txt');
  for (const window of [bench, other]) await window.rowLike(new RegExp(`^Session ${session.name}, running · 1 change`));
  await other.command('Bough: Rename Branch');
  await other.type(`Rename ${session.name}`, 'shared');
  await bench.rowLike(/^Session shared, running/);
  await other.command('Bough: Show Terminal');
  await other.typeInTerminal('echo from-the-other-window > two.txt', 'the change', async () =>
    (await other.rows()).some((label) => /^Session shared, running · 2 changes/.test(label)),
  );
  await until('the text in the first window', async () =>
    (await bench.terminalText()).includes('from-the-other-window'),
  );
  assert.equal((await runInside(world, session, 'cat two.txt')).trim(), 'from-the-other-window');
}
