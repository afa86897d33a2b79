// Help, wrong use, doctor, agents, and what is left at the end. Steps of main.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { AgentPreset, DoctorCheck } from '../../helper/protocol/rpc.js';
import { root } from '../harness.js';
import { lastLine, type Command } from './command.js';
import type { Suite } from './suite.js';

const commands = [
  ...[
    'start',
    'branch',
    'ls',
    'diff',
    'show',
    'exec',
    'attach',
    'checks',
    'commit',
    'undo',
    'resolve',
    'rebase',
    'abort',
  ],
  ...['checkpoint', 'restore', 'stop', 'rename', 'mount', 'agents', 'gc', 'doctor', 'shutdown'],
];

export async function surfaceTests(suite: Suite, bough: Command): Promise<void> {
  await suite.test('every command has a help with an example', async () => {
    const overview = await bough.text('--help');
    for (const name of commands) {
      assert.match(overview, new RegExp(`^ {2}${name}\\b`, 'm'));
      const help = await bough.text(name, '--help');
      assert.match(help, new RegExp(`^Usage: bough ${name}\\b`, 'm'));
      assert.match(help, /^Examples?:\n {2}\$ \S/m);
      assert.match(help, /--json/);
    }
  });

  await suite.test('the version is that of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    assert.equal(await bough.text('--version'), `${version}\n`);
  });

  await suite.test('wrong use ends with 2 and says why', async () => {
    const unknown = await bough.run('ls', '--nonsense', '--json');
    assert.equal(unknown.status, 2);
    assert.match(unknown.stderr, /unknown option '--nonsense'/);
    assert.equal((lastLine(unknown)['error'] as { code: string }).code, 'E_USAGE');
    assert.equal((await bough.run('frobnicate')).status, 2);
  });

  await suite.test('doctor looks at everything and changes nothing', async () => {
    const ran = await bough.run('doctor', '--json');
    const { ok, checks } = lastLine(ran) as { ok: boolean; checks: DoctorCheck[] };
    assert.equal(ran.status, ok ? 0 : 1);
    const ids = checks.map(({ id }) => id);
    for (const id of ['kernel', 'fuse', 'bubblewrap', 'kvm', 'git', 'node', 'boughfs', 'addon', 'folder', 'helper']) {
      assert.ok(ids.includes(id), id);
    }
    assert.equal(checks.find(({ id }) => id === 'helper')?.status, 'skip', 'no helper was started');
    const failed = checks.filter(({ status }) => status === 'fail');
    assert.deepEqual(failed, [], 'where this suite runs, Bough can run');
    assert.match((await bough.run('doctor')).stdout, /^Bough can run here: /m);
  });

  await suite.test('agents lists what can be started', async () => {
    const { agents } = (await bough.json('agents')) as unknown as { agents: AgentPreset[] };
    assert.deepEqual(
      agents.filter(({ id }) => id === 'shell' || id === 'repair').map(({ missing }) => missing),
      [undefined, undefined],
    );
  });

  await suite.test('a folder without branches is listed, and asked for a branch says so', async () => {
    const { branches, folder } = await bough.json('ls');
    assert.deepEqual([branches, folder], [[], bough.world.folder]);
    await bough.failure('E_NO_BRANCH', 'diff');
    await bough.failure('E_NO_BRANCH', 'commit', 'nobody');
    await bough.failure('E_NO_AGENT', 'start', 'nobody');
    assert.deepEqual((await bough.json('ls'))['branches'], [], 'a start that failed leaves no branch');
  });

  await suite.test('now doctor sees the helper', async () => {
    const { checks } = (await bough.json('doctor')) as unknown as { checks: DoctorCheck[] };
    assert.equal(checks.find(({ id }) => id === 'helper')?.status, 'pass');
  });
}

export async function endTests(suite: Suite, bough: Command): Promise<void> {
  await suite.test('abort --recursive drops a branch with all below it', async () => {
    const { branches } = (await bough.json('ls')) as unknown as { branches: { id: string; parent: string }[] };
    for (const { id } of branches.filter(({ parent }) => parent === 'base')) await bough.json('abort', id, '-r');
    assert.deepEqual((await bough.json('ls'))['branches'], []);
  });

  await suite.test('gc finds nothing after that', async () => {
    const { mounts, processes, files } = await bough.json('gc');
    assert.deepEqual([mounts, processes, files], [0, 0, 0]);
  });

  await suite.test('shutdown ends the helper, and nothing is left', async () => {
    assert.equal((await bough.json('shutdown'))['ran'], true);
    assert.equal((await bough.json('shutdown'))['ran'], false);
    await bough.world.shutdown();
    // What an undone commit put there stays in the store, so that the undo can be undone.
    const left = bough.world.leftovers().names.filter((name) => !/\/store\/objects\//.test(name));
    assert.deepEqual(left, []);
  });
}
