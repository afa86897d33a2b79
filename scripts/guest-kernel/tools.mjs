// What building a kernel needs of this machine, and how its failures are told. Used by scripts/guest-kernel.mjs.
import { statfsSync, existsSync } from 'node:fs';
import { findProgram } from '../packages.mjs';
import { lastLines, run } from '../processes.mjs';
import { SetupError } from '../report.mjs';

/** Programs, and the packages that have them. @type {Readonly<Record<string, string>>} */
const programs = {
  make: 'make',
  gcc: 'gcc',
  ld: 'binutils',
  flex: 'flex',
  bison: 'bison',
  bc: 'bc',
  patch: 'patch',
  tar: 'tar',
  xz: 'xz-utils',
  perl: 'perl',
};

/** Of libelf, for the kernel's objtool. */
const libelf = ['/usr/include/libelf.h', '/usr/include/x86_64-linux-gnu/libelf.h'];

export function requireTools() {
  const packages = Object.entries(programs).flatMap(([program, name]) => (findProgram(program) ? [] : [name]));
  if (!libelf.some((file) => existsSync(file))) packages.push('libelf-dev');
  if (packages.length === 0) return;
  throw new SetupError(
    'BOUGH_KERNEL_TOOLS',
    'The guest kernel cannot be built',
    `these are not installed: ${packages.join(', ')}`,
    `apt-get install ${packages.join(' ')}`,
  );
}

/** Source and objects while it is built; the result has 20 MB. */
const neededMib = 2048;

/** @param {string} folder @param {number} [needed] MiB */
export function requireRoom(folder, needed = neededMib) {
  const { bavail, bsize } = statfsSync(folder);
  const freeMib = Math.floor((bavail * bsize) / 2 ** 20);
  if (freeMib < needed) throw diskFull(folder, `${freeMib} MiB are free, a build needs ${needed}`);
}

/** @param {string} folder @param {string} why */
function diskFull(folder, why) {
  return new SetupError(
    'BOUGH_KERNEL_DISK_FULL',
    'There is no room to build the guest kernel',
    why,
    `free some space on the file system of ${folder}, or set XDG_CACHE_HOME to a folder with room`,
  );
}

/**
 * Runs one program of the build.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {import('../processes.mjs').RunOptions} options
 */
export async function runStep(program, args, options) {
  const result = await run(program, args, options);
  if (result.status === 0) return;
  if (/No space left on device/.test(result.output)) throw diskFull(options.cwd ?? '.', 'No space left on device');
  const last = args.at(-1) ?? '';
  throw new SetupError(
    'BOUGH_KERNEL_BUILD',
    `The guest kernel could not be built (${program} ${last})`,
    result.timedOut ? 'it took too long' : lastLines(result.output, 20),
    'if the compiler or the kernel source is newer than this recipe, have BOUGH_KERNEL name a kernel that is built',
  );
}
