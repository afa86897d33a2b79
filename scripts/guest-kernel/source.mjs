// The kernel source of the distribution: the newest linux-source archive in /usr/src. Used by scripts/guest-kernel.mjs.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SetupError } from '../report.mjs';
import { runStep } from './tools.mjs';

/** @typedef {{path: string, name: string, digest: string}} KernelSource */

/**
 * Archives of kernels in a folder, newest version first. Debian has them in /usr/src, Ubuntu in a folder each there.
 * @param {string} folder
 * @returns {string[]} paths
 */
export function sourceArchives(folder) {
  if (!existsSync(folder)) return [];
  const pattern = /^linux-source-[0-9.]+\.tar\.(xz|bz2)$/;
  const paths = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (pattern.test(entry.name)) return [join(folder, entry.name)];
    if (!entry.isDirectory() || !entry.name.startsWith('linux-source-')) return [];
    return readdirSync(join(folder, entry.name))
      .filter((name) => pattern.test(name))
      .map((name) => join(folder, entry.name, name));
  });
  const byVersion = new Intl.Collator('en', { numeric: true });
  return paths.sort((a, b) => byVersion.compare(basename(b), basename(a)));
}

/** @returns {Promise<KernelSource>} */
export async function findSource() {
  const [path] = sourceArchives('/usr/src');
  if (path === undefined) {
    throw new SetupError(
      'BOUGH_KERNEL_NO_SOURCE',
      'There is no kernel source to build the guest kernel from',
      'no linux-source-*.tar.xz is in /usr/src',
      'apt-get install linux-source, or have BOUGH_KERNEL name a kernel that is built',
    );
  }
  // The bytes, not the name: an update of the package keeps the name.
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return { path, name: basename(path).replace(/\.tar\..*$/, ''), digest: hash.digest('hex') };
}

/** What a configuration without hardware never compiles. Its Kconfig files and Makefiles are read all the same. */
const unusedCode = [
  ...[
    'alpha',
    'arc',
    'arm',
    'arm64',
    'csky',
    'hexagon',
    'ia64',
    'loongarch',
    'm68k',
    'microblaze',
    'mips',
    'nios2',
  ].map((name) => `arch/${name}`),
  ...['openrisc', 'parisc', 'powerpc', 'riscv', 's390', 'sh', 'sparc', 'xtensa'].map((name) => `arch/${name}`),
  ...['gpu', 'media', 'infiniband', 'staging', 'scsi', 'iio', 'usb', 'mtd', 'hwmon', 'isdn', 'accel', 'crypto'].map(
    (name) => `drivers/${name}`,
  ),
  ...['net/ethernet', 'net/wireless', 'net/dsa', 'net/can', 'pinctrl', 'clk', 'regulator', 'comedi'].map(
    (name) => `drivers/${name}`,
  ),
  'sound',
].map((folder) => `*/${folder}/*.[chS]`);
const unusedElsewhere = ['*.dts', '*.dtsi', '*/Documentation/*.rst', '*/Documentation/*.yaml', '*/tools/testing/*'];

/** @param {KernelSource} source @param {string} tree a folder that does not exist yet */
export async function unpackSource(source, tree) {
  mkdirSync(tree, { recursive: true });
  const exclude = [...unusedCode, ...unusedElsewhere].map((pattern) => `--exclude=${pattern}`);
  await runStep('tar', ['-x', '-f', source.path, '-C', tree, '--strip-components=1', '--no-same-owner', ...exclude], {
    timeoutMs: 30 * 60_000,
  });
}
