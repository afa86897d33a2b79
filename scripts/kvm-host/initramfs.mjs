// What the emulated KVM host boots: a distribution's kernel, and a first root with busybox, modules, our init script and
// our agent. Used by machine.mjs, and by set-up to have it ready.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findProgram } from '../packages.mjs';
import { lastLines, root, run } from '../processes.mjs';
import { SetupError } from '../report.mjs';
import { cpioArchive, fileMode, folderMode, programMode } from './cpio.mjs';
import { cacheFolder, ensureHostKernel } from './kernel.mjs';

const sources = join(root, 'test', 'vm', 'kvm-host');

/** @typedef {{kernel: string, initramfs: string}} BootFiles */

/** @returns {Promise<BootFiles>} */
export async function ensureBootFiles() {
  const busybox = requireProgram('busybox', 'busybox-static');
  requireProgram('g++', 'g++');
  const kernel = await ensureHostKernel();
  const script = readFileSync(join(sources, 'init.sh'));
  const agentSource = readFileSync(join(sources, 'agent.cc'));
  const digest = createHash('sha256');
  for (const part of [kernel.name, script, agentSource, readFileSync(busybox)]) digest.update(part);
  const folder = join(cacheFolder(), 'kvm-host', `initramfs-${digest.digest('hex').slice(0, 16)}`);
  const initramfs = join(folder, 'initramfs.cpio');
  if (existsSync(initramfs)) return { kernel: kernel.image, initramfs };

  mkdirSync(folder, { recursive: true });
  const agent = join(folder, `agent-${process.pid}`);
  const built = await run('g++', ['-std=c++20', '-O2', '-static', join(sources, 'agent.cc'), '-o', agent]);
  if (built.status !== 0) {
    throw new SetupError(
      'BOUGH_KVM_HOST_AGENT',
      'The agent of the emulated KVM host did not compile',
      lastLines(built.output, 10),
      'mend test/vm/kvm-host/agent.cc',
    );
  }
  const archive = cpioArchive([
    ...['bin', 'proc', 'sys', 'dev', 'modules'].map((path) => ({ path, mode: folderMode })),
    { path: 'bin/busybox', mode: programMode, data: readFileSync(busybox) },
    { path: 'init', mode: programMode, data: script },
    { path: 'agent', mode: programMode, data: readFileSync(agent) },
    // The script loads them in the order of their names.
    ...kernel.modules.map((path, index) => ({
      path: `modules/${String(index).padStart(2, '0')}-${basename(path)}`,
      mode: fileMode,
      data: readFileSync(path),
    })),
  ]);
  rmSync(agent);
  const partial = `${initramfs}.${process.pid}`;
  writeFileSync(partial, archive);
  renameSync(partial, initramfs);
  return { kernel: kernel.image, initramfs };
}

/** @param {string} program @param {string} fromPackage */
function requireProgram(program, fromPackage) {
  const path = findProgram(program);
  if (path !== undefined) return path;
  throw new SetupError(
    'BOUGH_KVM_HOST_TOOL_MISSING',
    'The emulated KVM host cannot be built',
    `${program} is not installed`,
    `apt-get install ${fromPackage}`,
  );
}
