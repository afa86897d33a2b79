// When things go wrong under a person's hands: the same file changed on both sides, a machine without bubblewrap, a helper
// or a boughfs that is killed. Nothing is lost, and each is said with what to do.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Stage, StageOptions } from './harness.js';
import { branchesOf, branchNamed, runInside } from './helper-of.js';
import { rowSays, sessionRow, startShell } from './steps.js';
import { until } from './wait.js';
import { processesOf } from './world.js';

/** The person edits the file that the branch has changed; the commit asks, and does what is answered. */
export async function conflict(stage: Stage): Promise<void> {
  const { world, bench, picture } = stage;
  const readme = path.join(world.sample, 'README.md');
  const money = path.join(world.sample, 'src/money.js');
  const session = await startShell(stage);
  const row = sessionRow(session);
  await runInside(world, session, "sed -i '1s/.*/# Of the branch/' README.md && sed -i '1s|^|// top\\n|' src/money.js");
  await until('the changes', () => rowSays(stage, row, /2 changes/));

  // The same line of one file, another place of the other: the first is a conflict, the second is merged.
  await bench.openFile('README.md', /^README\.md/);
  await until('the person’s edit on disk', async () => {
    if (readFileSync(readme, 'utf8').startsWith('# Of the person')) return true;
    await bench.replaceFirstLine('# Of the person');
    await bench.page.keyboard.press('Control+S');
    return until('the save', () => readFileSync(readme, 'utf8').startsWith('# Of the person'), 10_000).catch(
      () => false,
    );
  });
  writeFileSync(money, `${readFileSync(money, 'utf8')}// bottom\n`);
  const before = readFileSync(money, 'utf8');

  const commit = () => bench.rowButton(row, 'Commit to Parent', () => bench.dialog().isVisible());
  await commit();
  await picture('conflict');
  const said = await bench.answer(/E_CONFLICT/, 'Cancel');
  assert.match(said, /README\.md: changed on both sides/);
  assert.doesNotMatch(said, /money\.js/, 'what can be merged by lines is no conflict');
  assert.ok(readFileSync(readme, 'utf8').startsWith('# Of the person'), 'nothing is changed by a refused commit');
  assert.equal(readFileSync(money, 'utf8'), before, 'nothing is changed by a refused commit');

  await commit();
  await bench.answer(/E_CONFLICT/, "Keep the Branch's Version");
  await until('the commit', () => rowSays(stage, row, / committed/));
  assert.ok(readFileSync(readme, 'utf8').startsWith('# Of the branch'));
  const merged = readFileSync(money, 'utf8');
  assert.ok(merged.startsWith('// top\n') && merged.endsWith('// bottom\n'), 'both edits are in the merged file');
}

/** A PATH in which everything is but bubblewrap. */
export const withoutBubblewrap: StageOptions = {
  prepare: (world) => {
    const bin = path.join(world.root, 'bin');
    mkdirSync(bin);
    const named = new Set<string>();
    for (const folder of (process.env['PATH'] ?? '').split(path.delimiter)) {
      let names: readonly string[] = [];
      try {
        names = readdirSync(folder);
      } catch {
        // PATH may name folders that are not there.
      }
      for (const name of names) {
        if (name === 'bwrap' || named.has(name)) continue;
        named.add(name);
        symlinkSync(path.join(folder, name), path.join(bin, name));
      }
    }
    world.env['PATH'] = bin;
    // The editor's server asks the login shell for the environment, and /etc/profile sets PATH.
    writeFileSync(path.join(world.env['HOME'] ?? world.root, '.bash_profile'), `export PATH=${bin}\n`);
  },
};

export async function doctor({ world, bench, picture }: Stage): Promise<void> {
  await bench.openBoughView();
  await bench.command('Bough: Doctor');
  await until('the report', async () => /Bough: Doctor/.test(await bench.editorText()));
  const text = await until('the finding about bubblewrap', async () => {
    const shown = await bench.editorText();
    return /FAIL: .*bubblewrap/i.test(shown) && /Fix: .*bubblewrap/i.test(shown) ? shown : undefined;
  });
  assert.match(text, /cannot do its whole work/);
  await picture('doctor');
  // Starting says the same instead of failing somewhere later, and leaves nothing behind.
  await bench.command('Bough: Start Agent');
  await bench.pick('Start Agent', 'Shell');
  await until('the error', async () => (await bench.notifications()).some((said) => /E_NO_BWRAP/.test(said)));
  assert.equal((await branchesOf(world)).length, 0);
}

function pidsOf(world: Stage['world'], program: RegExp): readonly number[] {
  return processesOf(world).flatMap(({ pid, command }) => (program.test(command) ? [pid] : []));
}

/** The helper is killed: the window finds the next one by itself, and every change is there. */
export async function helperKilled(stage: Stage): Promise<void> {
  const { world, bench } = stage;
  const session = await startShell(stage);
  const row = sessionRow(session);
  await runInside(world, session, 'echo kept > kept.txt');
  await until('the change', () => rowSays(stage, row, /1 change/));
  const [helper, ...others] = pidsOf(world, /dist\/helper\.js/);
  assert.ok(helper !== undefined && others.length === 0, 'one helper');
  process.kill(helper, 'SIGKILL');
  await until('another helper', () => pidsOf(world, /dist\/helper\.js/).some((pid) => pid !== helper));
  assert.equal((await branchNamed(world, session.name)).id, session.id);
  // The tree follows the new helper. The shell lost its terminal with the old one; Enter in it brings a new one.
  await until('a shell that has ended', () => rowSays(stage, row, /^Session [^,]+, (?!running)/));
  await runInside(world, session, 'echo more > more.txt');
  await until('the next change', () => rowSays(stage, row, /2 changes/));
  await until('the terminal to say so', async () => (await bench.terminalText()).includes('Enter: a shell'));
  await bench.typeInTerminal('echo again > again.txt', 'a third change', () =>
    rowSays(stage, row, /running · 3 changes/),
  );
  await bench.command('Bough: Rename Branch');
  await bench.type(`Rename ${session.name}`, 'renamed');
  await bench.rowLike(/^Session renamed, running · 3 changes/);
}

/** boughfs is killed: its mounts come back, with what was written. */
export async function boughfsKilled(stage: Stage): Promise<void> {
  const { world, bench } = stage;
  const session = await startShell(stage);
  await runInside(world, session, 'echo kept > kept.txt && sync kept.txt');
  await until('the change', () => rowSays(stage, sessionRow(session), /1 change/));
  const [boughfs, ...others] = pidsOf(world, /^\S*boughfs /);
  assert.ok(boughfs !== undefined && others.length === 0, 'one boughfs');
  process.kill(boughfs, 'SIGKILL');
  await until('another boughfs', () => pidsOf(world, /^\S*boughfs /).some((pid) => pid !== boughfs));
  const folder = await until('the mount', async () => (await branchNamed(world, session.name)).folder);
  await until('the file in the mount', () => readFileSync(path.join(folder, 'kept.txt'), 'utf8') === 'kept\n');
  await bench.rowButton(sessionRow(session), 'Commit to Parent', () =>
    rowSays(stage, sessionRow(session), / committed/),
  );
  assert.equal(readFileSync(path.join(world.sample, 'kept.txt'), 'utf8'), 'kept\n');
}
