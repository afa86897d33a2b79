// The tests of boughvm on KVM, this computer's or an emulated one: `tsx test/vm/main.ts [doctest options]`.
// BOUGH_VM_PRESET names another build whose boughvm is tested (asan). Last line: `N passed, N failed, N skipped`.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { openKvmHost } from '../../scripts/kvm-host/host.mjs';
import { root } from '../harness.js';

const preset = process.env['BOUGH_VM_PRESET'] ?? 'release';
const program = join(root, 'build', 'release', 'boughvm_test');
const boughvm = join(root, 'build', preset, 'boughvm');
for (const [file, target] of [
  [program, 'boughvm_test'],
  [boughvm, 'boughvm'],
] as const) {
  if (existsSync(file)) continue;
  console.log(`BOUGH_VM_NOT_BUILT: ${file} is missing: build ${target} (npm run build)`);
  console.log('0 passed, 1 failed, 0 skipped');
  process.exit(1);
}

const started = performance.now();
const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
const host = await openKvmHost();
console.log(`KVM: ${host.kind}, there after ${seconds()}`);
let output = '';
try {
  const show = (bytes: Buffer) => {
    output += bytes.toString('utf8');
    process.stdout.write(bytes);
  };
  const running = await host.start(
    [program, '--no-version=true', ...process.argv.slice(2)],
    {
      env: {
        ...process.env,
        BOUGHVM: boughvm,
        // Files of the emulated machine's own: a shared folder has neither sockets nor O_TMPFILE.
        TMPDIR: '/tmp',
        BOUGH_VM_EMULATED: host.kind === 'direct' ? '0' : '1',
        BOUGH_VM_ASAN: preset === 'asan' ? '1' : '0',
        // A process that is locked in or frozen cannot be looked at from outside.
        ASAN_OPTIONS: 'detect_leaks=0',
      },
      timeoutMs: 20 * 60_000,
    },
    { output: show, error: show },
  );
  running.endInput();
  const { status, signal } = await running.ended;
  const counts = /test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed/.exec(output);
  const skipped = output.match(/^skipped:/gm)?.length ?? 0;
  let [passed, failed] = [Number(counts?.[2] ?? 0) - skipped, Number(counts?.[3] ?? 0)];
  if (status !== 0 && failed === 0) {
    console.log(`boughvm_test did not come to its end: ${signal ?? `exit status ${String(status)}`}`);
    failed = 1;
    passed = Math.max(passed, 0);
  }
  console.log(`in ${seconds()}`);
  console.log(`${String(passed)} passed, ${String(failed)} failed, ${String(skipped)} skipped`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  await host.close();
}
