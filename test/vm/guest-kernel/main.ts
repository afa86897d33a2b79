// Boots the guest kernel with QEMU's smallest machine, emulated, and has check.cc try what programs need of a kernel:
// `tsx test/vm/guest-kernel/main.ts`. The kernel is the one that BOUGH_KERNEL names, else this computer's; with the
// kernel for software KVM the CPU lacks what such a KVM takes away. How boughvm boots it is for boughvm's suites.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ensureGuestKernel } from '../../../scripts/guest-kernel.mjs';
import { cpioArchive, programMode } from '../../../scripts/kvm-host/cpio.mjs';
import { findProgram } from '../../../scripts/packages.mjs';
import { runProgram } from '../../cli/run-program.js';
import { Suite } from '../../cli/suite.js';

const suite = new Suite();
const folder = suite.folder('guest-kernel');

interface Kernel {
  readonly path: string;
  /** Its configuration; empty for a kernel that somebody else made. */
  readonly config: string;
  /** Where programs enter it, in hexadecimal digits; undefined for a kernel without its table of symbols. */
  readonly entry: string | undefined;
}

async function findKernel(): Promise<Kernel> {
  const { path } = await ensureGuestKernel();
  const beside = (name: string) => {
    const file = join(dirname(path), name);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  const entry = /^([0-9a-f]+) T entry_SYSCALL_64$/m.exec(beside('System.map'))?.[1];
  return { path, config: beside('config'), entry };
}

/** What software KVM takes out of the CPU: each use of it would be an illegal instruction. */
const missingOnSoftware = [
  ...['smap', 'smep', 'cx16', 'umip', 'popcnt', 'xsave', 'avx', 'avx2', 'fsgsbase', 'pcid', 'invpcid'],
  ...['bmi1', 'bmi2', 'rdtscp', 'rdpid', 'x2apic', 'la57'],
];
const softwareCommandLine = 'noxsave clearcpuid=smap,cx16,smep,popcnt rodata=off no_timer_check cgroup_disable=memory';

async function boot(kernel: Kernel): Promise<string> {
  const check = join(folder, 'check');
  const source = join(import.meta.dirname, 'check.cc');
  const built = await runProgram(['g++', '-std=c++20', '-O1', '-static', source, '-o', check]);
  assert.equal(built.status, 0, built.stderr);
  const initramfs = join(folder, 'initramfs.cpio');
  const device = { path: 'dev/console', mode: 0o020600, device: [5, 1] as const };
  writeFileSync(
    initramfs,
    cpioArchive([
      { path: 'dev', mode: 0o040755 },
      device,
      { path: 'init', mode: programMode, data: readFileSync(check) },
    ]),
  );
  const line = [
    // The emulated machine has no clock to measure the CPU's own by; any frequency will do here. KVM tells it.
    'console=ttyS0 quiet reboot=t panic=-1 nokaslr tsc=reliable tsc_early_khz=2000000',
    isSoftware(kernel) ? softwareCommandLine : '',
    kernel.entry === undefined ? '' : `check.entry=${kernel.entry}`,
  ].join(' ');
  const cpu = isSoftware(kernel) ? `max,${missingOnSoftware.map((name) => `${name}=off`).join(',')}` : 'max,la57=off';
  const { stdout, stderr } = await runProgram(
    [
      ...['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
      ...['-machine', 'microvm,acpi=off,pit=on,pic=on,rtc=off', '-accel', 'tcg,thread=multi', '-cpu', cpu],
      ...['-smp', isSoftware(kernel) ? '1' : '2', '-m', '256', '-kernel', kernel.path, '-initrd', initramfs],
      ...['-append', line, '-serial', 'stdio', '-device', 'virtio-rng-device', '-device', 'virtio-serial-device'],
    ],
    { timeoutMs: 10 * 60_000 },
  );
  return `${stdout}\n${stderr}`.replaceAll('\r', '');
}

function isSoftware({ config }: Kernel): boolean {
  return config !== '' && !config.includes('CONFIG_SMP=y');
}

if (findProgram('qemu-system-x86_64') === undefined) {
  suite.skip('the guest kernel', 'qemu-system-x86_64 is not installed');
} else {
  const kernel = await findKernel();
  const started = performance.now();
  const said = await boot(kernel);
  console.log(`${kernel.path}: ${Math.round(performance.now() - started)} ms from start to end`);
  await suite.test('it boots to its first process and ends when that says so', () => {
    assert.match(said, /^start$/m, said.slice(-3000));
    assert.match(said, /^end$/m, said.slice(-3000));
  });
  for (const [, name = ''] of said.matchAll(/^ok (.*)$/gm)) await suite.test(`programs have: ${name}`, () => undefined);
  for (const [, name = '', why = ''] of said.matchAll(/^FAIL ([^:]*): (.*)$/gm)) {
    await suite.test(`programs have: ${name}`, () => assert.fail(why));
  }
  if (kernel.config === '') {
    suite.skip('CPUs and timers', 'the kernel that BOUGH_KERNEL names has no configuration beside it');
  } else {
    await suite.test('CPUs and timers are those of its kind', () => {
      const fact = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(said)?.[1]);
      assert.equal(fact('cpus'), isSoftware(kernel) ? 1 : 2);
      assert.equal(fact('resolution'), isSoftware(kernel) ? 10_000_000 : 1);
    });
  }
}
suite.finish();
