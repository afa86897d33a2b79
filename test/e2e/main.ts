// The end-to-end suite: a person's work in a real VS Code in a real browser.
//   npx tsx test/e2e/main.ts [story …]
// Pictures go to $BOUGH_E2E_PICTURES, or to a temp folder that is named when a story fails. The last line says
// `N passed, N failed, N skipped`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findChromium, install, onStage, type Stage, type StageOptions } from './harness.js';
import { mainJob, prepareMainJob, workspaceFolder } from './main-job.js';
import { manyChanges, twoWindows } from './many.js';
import { review } from './review.js';
import { boughfsKilled, conflict, doctor, helperKilled, withoutBubblewrap } from './trouble.js';

interface Story {
  readonly name: string;
  readonly options: StageOptions;
  readonly run: (stage: Stage) => Promise<void>;
}

const stories: readonly Story[] = [
  { name: 'main-job', options: { prepare: prepareMainJob }, run: mainJob },
  { name: 'workspace-folder', options: {}, run: workspaceFolder },
  {
    name: 'review',
    options: { settings: { 'bough.checks': 'node --test test/money.test.js', 'bough.hunks.codeLens': true } },
    run: review,
  },
  { name: 'conflict', options: {}, run: conflict },
  { name: 'doctor', options: withoutBubblewrap, run: doctor },
  { name: 'helper-killed', options: {}, run: helperKilled },
  { name: 'boughfs-killed', options: {}, run: boughfsKilled },
  { name: 'many-changes', options: {}, run: manyChanges },
  { name: 'two-windows', options: {}, run: twoWindows },
];

async function main(): Promise<number> {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !stories.some((story) => story.name === name));
  if (unknown.length > 0) {
    console.error(`no such story: ${unknown.join(', ')}; there are ${stories.map(({ name }) => name).join(', ')}`);
    return 2;
  }
  const chosen = stories.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  if (findChromium() === undefined) {
    console.log('CHROMIUM_MISSING: no Chromium on this machine');
    console.log(`0 passed, 0 failed, ${chosen.length} skipped`);
    return 0;
  }
  const given = process.env['BOUGH_E2E_PICTURES'];
  const pictures = given ?? mkdtempSync(path.join(tmpdir(), 'be-pictures-'));
  let failed = 0;
  const installed = await install(pictures);
  try {
    for (const story of chosen) {
      const started = Date.now();
      try {
        await onStage(story.name, installed, story.options, story.run);
        console.log(`ok    ${story.name} (${Math.round((Date.now() - started) / 1000)} s)`);
      } catch (error) {
        failed++;
        console.log(`FAIL  ${story.name} (${Math.round((Date.now() - started) / 1000)} s)`);
        console.log(error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error));
      }
    }
  } finally {
    installed.remove();
    if (given === undefined && failed === 0) rmSync(pictures, { recursive: true, force: true });
  }
  console.log(`${chosen.length - failed} passed, ${failed} failed, 0 skipped`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main();
