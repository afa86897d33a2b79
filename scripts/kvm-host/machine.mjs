// The emulated KVM host: a QEMU machine without any virtualization of its own (TCG) whose processor has AMD-V, a
// distribution's kernel with kvm_amd on it, and this computer's root as its root. For computers without /dev/kvm.
// Used by keeper.mjs and by tests through host.mjs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../packages.mjs';
import { cleanUpOnce, lastLines } from '../processes.mjs';
import { SetupError } from '../report.mjs';
import { cpioArchive, fileMode } from './cpio.mjs';
import { FrameReader, FrameType } from './frames.mjs';
import { ensureBootFiles } from './initramfs.mjs';

const qemu = 'qemu-system-x86_64';
const bootDeadlineMs = 15 * 60_000; // only against a hang: a busy computer takes many times the usual 15 s

/** Why there cannot be an emulated KVM host here, or undefined. @returns {string | undefined} */
export function withoutEmulation() {
  if (process.arch !== 'x64') return 'the emulated KVM host is for x86-64 only';
  return findProgram(qemu) === undefined ? `${qemu} is not installed` : undefined;
}

/**
 * @typedef {object} Machine
 * @property {(frame: Buffer) => void} send
 * @property {(listener: (frame: import('./frames.mjs').Frame) => void) => void} onFrame one listener
 * @property {Promise<void>} ended
 * @property {() => Promise<void>} stop
 */

/**
 * Boots one; it ends with this process, however that ends: the agent powers off when its port closes.
 * @param {{shares: readonly string[], memoryMib: number}} options folders that commands may change, by their real paths
 * @returns {Promise<Machine>}
 */
export async function bootMachine({ shares, memoryMib }) {
  const reason = withoutEmulation();
  if (reason !== undefined) {
    throw new SetupError(
      'BOUGH_KVM_HOST_NONE',
      'There is neither KVM nor an emulation of it',
      reason,
      'apt-get install qemu-system-x86',
    );
  }
  const { kernel, initramfs } = await ensureBootFiles();
  const folder = mkdtempSync(join(tmpdir(), 'bough-kvm-'));
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  const clear = cleanUpOnce(() => {
    child?.kill('SIGKILL'); // it has nothing to save
    rmSync(folder, { recursive: true, force: true });
    return Promise.resolve();
  });
  const first = join(folder, 'initramfs.cpio');
  const console = join(folder, 'console.log');
  const lines = shares.map((path, index) => `share${index} ${path}\n`).join('');
  // Linux unpacks archives one after another.
  writeFileSync(
    first,
    Buffer.concat([readFileSync(initramfs), cpioArchive([{ path: 'shares', mode: fileMode, data: lines }])]),
  );

  const args = qemuArguments({ kernel, initramfs: first, console, shares, memoryMib });
  // Descriptor 3 is the agent's port. A group of its own: Ctrl-C is for the command, not for the machine.
  child = spawn(qemu, args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (/** @type {string} */ text) => (said += text));
  }
  const ended = once(child, 'exit').then(clear);
  const port = /** @type {import('node:net').Socket} */ (child.stdio[3]);
  port.on('error', () => undefined); // its end is told by `ended`
  /** @type {(frame: import('./frames.mjs').Frame) => void} */
  let listener = () => undefined;
  const reader = new FrameReader();
  port.on('data', (bytes) => reader.push(bytes).forEach((frame) => listener(frame)));

  const stop = async () => {
    await clear();
    await ended;
  };
  const ready = new Promise((resolve) => (listener = (frame) => frame.type === FrameType.ready && resolve('ready')));
  const deadline = new Promise((resolve) => setTimeout(resolve, bootDeadlineMs, 'late').unref());
  const outcome = await Promise.race([ready, deadline, once(child, 'exit').then(() => 'ended')]);
  if (outcome !== 'ready') {
    const log = readTail(console);
    await stop();
    throw new SetupError(
      'BOUGH_KVM_HOST_BOOT',
      'The emulated KVM host did not come up',
      `${outcome === 'late' ? `it took more than ${bootDeadlineMs / 60_000} minutes` : 'QEMU ended'}\n${said}${log}`,
      `look at what it printed; the command was: ${qemu} ${args.join(' ')}`,
    );
  }
  return {
    send: (frame) => void port.write(frame),
    onFrame: (next) => (listener = next),
    ended,
    stop,
  };
}

/** @param {string} file */
function readTail(file) {
  try {
    return lastLines(readFileSync(file, 'latin1'), 15);
  } catch {
    return '';
  }
}

/**
 * @param {{kernel: string, initramfs: string, console: string, shares: readonly string[], memoryMib: number}} options
 * @returns {string[]}
 */
function qemuArguments({ kernel, initramfs, console, shares, memoryMib }) {
  // Files keep their owners where QEMU may set them.
  const security = process.getuid?.() === 0 ? 'passthrough' : 'none';
  const folder = (/** @type {string} */ tag, /** @type {string} */ path, /** @type {string} */ more) => [
    '-fsdev',
    `local,id=${tag},path=${path.replaceAll(',', ',,')},security_model=${security},multidevs=remap${more}`,
    '-device',
    `virtio-9p-pci,fsdev=${tag},mount_tag=${tag}`,
  ];
  const commandLine = [
    'console=ttyS0 quiet panic=-1 mitigations=off nokaslr',
    'tsc=reliable no_timer_check nowatchdog audit=0 apparmor=0 random.trust_cpu=on',
  ].join(' ');
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
    ...['-machine', 'q35,sata=off,smbus=off,usb=off'],
    ...['-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'max,la57=off', '-smp', '2', '-m', String(memoryMib)],
    ...['-kernel', kernel, '-initrd', initramfs, '-append', commandLine],
    ...['-serial', `file:${console}`],
    ...['-device', 'virtio-rng-pci', '-device', 'virtio-serial-pci'],
    ...['-chardev', 'socket,id=agent,fd=3', '-device', 'virtserialport,chardev=agent,name=bough.agent'],
    ...folder('root', '/', ',readonly=on'),
    ...shares.flatMap((path, index) => folder(`share${index}`, path, '')),
  ];
}
