// Builds the guest kernel of boughvm from the distribution's kernel source, or finds the one that was built from the same
// inputs before. Prints the path of an uncompressed vmlinux with a PVH entry.
//   node scripts/guest-kernel.mjs [--for hardware|software] [--json]
// BOUGH_KERNEL=path names a kernel that is there already. What is in it: native/guest/kernel; docs/guest-kernel.md.
// Used by set-up, by the suites with microVMs, and by hand.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { mergedConfig, readFragment, unkept } from './guest-kernel/config.mjs';
import { findSource, unpackSource } from './guest-kernel/source.mjs';
import { requireRoom, requireTools, runStep } from './guest-kernel/tools.mjs';
import { cacheFolder } from './kvm-host/kernel.mjs';
import { cleanUpOnce, root, run } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';

const recipe = join(root, 'native', 'guest', 'kernel');

/**
 * @typedef {'hardware' | 'software'} KvmKind what the guest runs on: VT-x or AMD-V, or a hypervisor that emulates the
 *   guest's kernel instruction by instruction (kvm_pvm). The software kernel boots on both.
 *
 * @typedef {object} GuestKernel
 * @property {string} path of the vmlinux
 * @property {'given' | 'cached' | 'built'} from
 * @property {string} [version] such as `6.1.192-bough`; not known of a given one
 */

/**
 * What guests of this computer run on, as far as that can be told without one. The module alone says little: it may be
 * part of a kernel that never uses it. Without any KVM guests run in the emulated KVM host, and that has AMD-V.
 * @returns {KvmKind}
 */
export function kvmKind() {
  const virtualizes = /^flags\s*:.* (vmx|svm)\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'));
  return existsSync('/sys/module/kvm_pvm') && existsSync('/dev/kvm') && !virtualizes ? 'software' : 'hardware';
}

/** The parts of the configuration, one laid over the other. @param {KvmKind} kind */
function fragmentsFor(kind) {
  return kind === 'software' ? ['base.config'] : ['base.config', 'hardware.config'];
}

/**
 * @param {{kind?: KvmKind, env?: NodeJS.ProcessEnv, quiet?: boolean}} [options]
 * @returns {Promise<GuestKernel>}
 */
export async function ensureGuestKernel({ kind = kvmKind(), env = process.env, quiet = false } = {}) {
  const given = env['BOUGH_KERNEL'];
  if (given !== undefined && given !== '') {
    if (existsSync(given)) return { path: given, from: 'given' };
    throw new SetupError(
      'BOUGH_KERNEL_GIVEN',
      'The guest kernel that BOUGH_KERNEL names is not there',
      `${given} does not exist`,
      'name an uncompressed vmlinux with a PVH entry, or unset BOUGH_KERNEL to have one built',
    );
  }
  const fragments = fragmentsFor(kind).map((name) => readFileSync(join(recipe, name), 'utf8'));
  const patches = readdirSync(join(recipe, 'patches'))
    .filter((name) => name.endsWith('.patch'))
    .sort()
    .map((name) => join(recipe, 'patches', name));
  await requireTools();
  const source = await findSource();
  const digest = createHash('sha256');
  const inputs = [...fragments, ...patches.map((path) => readFileSync(path, 'utf8')), source.digest, await compiler()];
  for (const input of inputs) digest.update(`${input.length}\n${input}`);
  const folder = join(cacheFolder(env), 'kernel', digest.digest('hex').slice(0, 32));
  if (existsSync(folder)) return { path: join(folder, 'vmlinux'), from: 'cached', version: versionOf(folder) };

  await build({
    fragments,
    patches,
    source,
    folder,
    steps: new Steps(`Guest kernel (${source.name}, once)`, { quiet }),
  });
  return { path: join(folder, 'vmlinux'), from: 'built', version: versionOf(folder) };
}

/** @param {string} folder */
function versionOf(folder) {
  return readFileSync(join(folder, 'version'), 'utf8').trim();
}

/** The compiler and linker: other ones make another kernel. @returns {Promise<string>} */
async function compiler() {
  const versions = await Promise.all(['gcc', 'ld'].map((program) => run(program, ['--version'])));
  return versions.map(({ output }) => output.split('\n')[0]).join('\n');
}

/**
 * @param {{fragments: readonly string[], patches: readonly string[], folder: string, steps: Steps,
 *   source: import('./guest-kernel/source.mjs').KernelSource}} what
 */
async function build({ fragments, patches, source, folder, steps }) {
  const cache = join(folder, '..');
  mkdirSync(cache, { recursive: true });
  removeAbandoned(cache);
  requireRoom(cache);
  // Made aside and then renamed: an interrupted build never looks complete, two at once do not meet.
  const work = mkdtempSync(join(cache, `.partial-${process.pid}-`));
  const clear = cleanUpOnce(() => Promise.resolve(rmSync(work, { recursive: true, force: true })));
  try {
    const tree = join(work, 'linux');
    await steps.run('Unpack the source', () => unpackSource(source, tree));
    await steps.run('Apply the patches', async (note) => {
      for (const patch of patches) await applyPatch(patch, tree);
      note(`${patches.length}`);
    });
    const config = join(work, 'fragment.config');
    writeFileSync(config, mergedConfig(fragments));
    await steps.run('Configure', async () => {
      await make(tree, ['allnoconfig'], { KCONFIG_ALLCONFIG: config });
      await make(tree, ['olddefconfig']);
      checkConfig(fragments, tree);
    });
    await steps.run('Compile', (note, progress) => compile(tree, note, progress));

    const result = join(work, 'result');
    mkdirSync(result);
    renameSync(join(tree, 'vmlinux'), join(result, 'vmlinux'));
    renameSync(join(tree, '.config'), join(result, 'config'));
    renameSync(join(tree, 'System.map'), join(result, 'System.map'));
    writeFileSync(join(result, 'version'), readFileSync(join(tree, 'include/config/kernel.release')));
    try {
      renameSync(result, folder);
    } catch (error) {
      // Somebody else built the same at the same time.
      if (!existsSync(join(folder, 'vmlinux'))) throw error;
    }
  } finally {
    await clear();
  }
}

/** What builds left that were killed. @param {string} cache */
function removeAbandoned(cache) {
  for (const name of readdirSync(cache)) {
    const pid = /^\.partial-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(cache, name), { recursive: true, force: true });
  }
}

/** @param {string} patch @param {string} tree */
async function applyPatch(patch, tree) {
  // One line of context, found wherever it is: point releases move code about. No fuzz: a line that differs is a reason to look.
  const result = await run('patch', ['-p1', '--fuzz=0', '--batch', '--forward', '-i', patch], { cwd: tree });
  if (result.status === 0) return;
  throw new SetupError(
    'BOUGH_KERNEL_PATCH',
    `The patch ${basename(patch)} does not fit this kernel source`,
    result.output.trim(),
    'install a kernel source that is known to work (linux-source-6.1), or adapt the patch in native/guest/kernel/patches',
  );
}

/** @param {readonly string[]} fragments @param {string} tree */
function checkConfig(fragments, tree) {
  const lost = unkept(readFragment(mergedConfig(fragments)), readFileSync(join(tree, '.config'), 'utf8'));
  if (lost.length === 0) return;
  throw new SetupError(
    'BOUGH_KERNEL_CONFIG',
    'The kernel cannot be configured as native/guest/kernel asks',
    `these did not come out as written: ${lost.join(', ')}`,
    'see in the Kconfig files what they depend on, or mark them "(where it exists)"',
  );
}

/** Objects that a build makes, about; only for the display. */
const usualObjects = 880;

/**
 * @param {string} tree
 * @param {(text: string) => void} note
 * @param {(text: string) => void} progress
 */
async function compile(tree, note, progress) {
  let objects = 0;
  await make(tree, ['-j', String(availableParallelism()), 'vmlinux'], {}, (text) => {
    objects += text.match(/^ {2}(CC|AS) /gm)?.length ?? 0;
    progress(`${Math.min(99, Math.floor((100 * objects) / usualObjects))} %`);
  });
  note(`${objects} objects`);
}

/**
 * @param {string} tree
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string>>} [variables]
 * @param {(text: string) => void} [onOutput]
 */
async function make(tree, args, variables = {}, onOutput) {
  // The same inputs make the same bytes, whoever builds where and when.
  const fixed = { KBUILD_BUILD_USER: 'bough', KBUILD_BUILD_HOST: 'bough', KBUILD_BUILD_TIMESTAMP: '@0' };
  await runStep('make', args, {
    cwd: tree,
    env: { ...process.env, ...fixed, ...variables, LC_ALL: 'C' },
    timeoutMs: 60 * 60_000,
    ...(onOutput === undefined ? {} : { onOutput }),
  });
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    const { values } = parseArgs({ options: { for: { type: 'string' }, json: { type: 'boolean', default: false } } });
    const kind = values.for ?? kvmKind();
    if (kind !== 'hardware' && kind !== 'software') {
      throw new SetupError(
        'BOUGH_KERNEL_USAGE',
        `There is no guest kernel for ${kind}`,
        'there are hardware and software',
        'node scripts/guest-kernel.mjs --for hardware',
      );
    }
    const kernel = await ensureGuestKernel({ kind, quiet: values.json });
    console.log(values.json ? JSON.stringify(kernel) : kernel.path);
  });
}
