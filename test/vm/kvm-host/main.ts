// The place where microVM suites run their programs, used as they use it: `tsx test/vm/kvm-host/main.ts`. On a computer
// with KVM the commands run on it directly, elsewhere in the emulated machine; what they see must be the same.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { openKvmHost } from '../../../scripts/kvm-host/host.mjs';
import { runProgram } from '../../cli/run-program.js';
import { Suite } from '../../cli/suite.js';

const root = join(import.meta.dirname, '..', '..', '..');
const suite = new Suite();
// In the checkout, because only that can be seen from both sides.
const folder = join(root, 'build', 'kvm-host-suite');
mkdirSync(folder, { recursive: true });

const started = performance.now();
const host = await openKvmHost();
console.log(`${host.kind}, there after ${Math.round(performance.now() - started)} ms`);
try {
  await suite.test('a nested guest runs', async () => {
    const probe = join(folder, 'probe');
    const source = join(import.meta.dirname, 'probe.cc');
    const built = await runProgram(['g++', '-std=c++20', '-O2', source, '-o', probe]);
    assert.equal(built.status, 0, built.stderr);
    const { status, stdout, stderr } = await host.run([probe]);
    assert.equal(status, 0, stderr);
    console.log(`      ${stdout.trim()}`);
    const result = JSON.parse(stdout) as Record<string, number>;
    assert.ok((result['exitsPerSecond'] ?? 0) > 100, stdout);
  });

  await suite.test('output, errors, input and exit status come through as they are', async () => {
    const script = 'printf "a\\0b\\n"; echo "to stderr" >&2; cat; exit 7';
    const result = await host.run(['sh', '-c', script], { input: 'from stdin' });
    assert.deepEqual(result, { status: 7, signal: null, stdout: 'a\0b\nfrom stdin', stderr: 'to stderr\n' });
  });

  await suite.test('much output and input is neither lost nor torn', async () => {
    const input = Array.from({ length: 60_000 }, (_, i) => `${i} line of input\n`).join('');
    const { status, stdout } = await host.run(['cat'], { input });
    assert.equal(status, 0);
    assert.ok(stdout === input, `${stdout.length} of ${input.length} characters came back`);
  });

  await suite.test('words and variables of a command arrive unchanged, working directory too', async () => {
    const script = 'printf "%s|" "$@" "$ODD" "$PWD"';
    const { stdout } = await host.run(['sh', '-c', script, 'sh', 'a b', '', '$HOME', 'ä\n'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], ODD: 'x=y z' },
    });
    assert.equal(stdout, `a b||$HOME|ä\n|x=y z|${folder}|`);
  });

  await suite.test('a signal ends a command and is told', async () => {
    const running = await host.start(
      ['sh', '-c', 'echo up; sleep 1000'],
      {},
      { output: () => running.kill('SIGTERM'), error: () => undefined },
    );
    assert.deepEqual(await running.ended, { status: null, signal: 'SIGTERM' });
    const late = await host.run(['sleep', '1000'], { timeoutMs: 200 });
    assert.equal(late.signal, 'SIGKILL');
  });

  await suite.test('commands run side by side', async () => {
    // Each waits for a file that the next one makes: in a row they would never end.
    const at = (i: number) => join(folder, `side-${i}`);
    const all = [0, 1, 2, 3].map((i) =>
      host.run(['sh', '-c', `touch ${at(i)}; until [ -e ${at((i + 1) % 4)} ]; do sleep 0.1; done; echo ${i}`], {
        timeoutMs: 120_000,
      }),
    );
    assert.deepEqual(
      (await Promise.all(all)).map(({ stdout }) => stdout),
      ['0\n', '1\n', '2\n', '3\n'],
    );
  });

  await suite.test('the checkout is the same on both sides, at once', async () => {
    const file = join(folder, 'shared');
    for (const text of ['one', 'another, longer']) {
      writeFileSync(file, text);
      assert.equal((await host.run(['cat', file])).stdout, text);
    }
    await host.run(['sh', '-c', `printf inside >${file}`]);
    assert.equal(readFileSync(file, 'utf8'), 'inside');
  });

  await suite.test('a program that is not there is told as a shell does', async () => {
    if (host.kind === 'direct') return;
    const { status, stderr } = await host.run(['/no/such/program']);
    assert.equal(status, 127);
    assert.match(stderr, /no\/such\/program: No such file/);
  });

  if (host.kind === 'direct') {
    suite.skip('the computer itself is out of reach', 'commands run on the computer itself here');
  } else {
    await suite.test('the computer itself is out of reach, but for the checkout', async () => {
      const { status, stderr } = await host.run(['sh', '-c', 'touch /usr/bin/evil']);
      assert.notEqual(status, 0);
      assert.match(stderr, /Read-only/);
      const script =
        'touch /tmp/mine /dev/shm/mine && [ -c /dev/fuse ] && [ -c /dev/kvm ] && [ -d /sys/fs/cgroup/init ] || mkdir /sys/fs/cgroup/init';
      assert.equal((await host.run(['sh', '-c', script])).status, 0);
    });
  }
} finally {
  await host.close();
  rmSync(folder, { recursive: true, force: true });
}
suite.finish();
