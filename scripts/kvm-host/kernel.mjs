// A distribution's kernel with kvm_amd for the emulated KVM host: downloaded by apt, unpacked into the cache and never
// installed. Used by initramfs.mjs.
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
import { homedir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { findProgram } from '../packages.mjs';
import { lastLines, run } from '../processes.mjs';
import { SetupError } from '../report.mjs';

/** Meta packages: Debian's, then Ubuntu's. Debian's "cloud" kernel has no 9p. */
const metaPackages = ['linux-image-amd64', 'linux-image-generic'];

/** The modules that the machine loads; what they depend on comes with them. A name that is built in may be absent. */
const wantedModules = [
  'virtio_pci',
  'virtio_console',
  'virtio_rng',
  '9pnet_virtio',
  '9p',
  'fuse',
  'overlay',
  'kvm_amd',
];

/**
 * @typedef {object} HostKernel
 * @property {string} name such as `linux-image-6.1.0-57-amd64_6.1.192-3`
 * @property {string} image the kernel as an ELF file: an emulated CPU would take half a minute to decompress it
 * @property {readonly string[]} modules files in the order in which they are loaded
 */

/** What all checkouts of a person share. @param {NodeJS.ProcessEnv} [env] */
export function cacheFolder(env = process.env) {
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'bough');
}

/** @param {string} why @param {string} [fix] */
function noKernel(why, fix) {
  return new SetupError(
    'BOUGH_KVM_HOST_NO_KERNEL',
    'There is no kernel with KVM to emulate a KVM host with',
    why,
    fix ?? 'see whether this works by itself: apt-get update && apt-get download linux-image-amd64',
  );
}

/** @returns {Promise<HostKernel>} */
export async function ensureHostKernel() {
  const cache = join(cacheFolder(), 'kvm-host');
  const packages = await kernelPackages();
  if (packages === undefined) {
    // Without apt's lists an older download is as good.
    const older = existsSync(cache) ? readdirSync(cache).filter((name) => isComplete(join(cache, name))) : [];
    const last = older.sort().at(-1);
    if (last === undefined) throw noKernel(`apt knows none of ${metaPackages.join(', ')}`);
    return readKernel(join(cache, last));
  }
  const [first] = packages;
  if (first === undefined) throw noKernel("the meta package names no kernel's package");
  const folder = join(cache, `${first.name}_${first.version.replaceAll(/[^\w.~+-]/g, '-')}`);
  if (isComplete(folder)) return readKernel(folder);

  // Made aside and then renamed: an interrupted download never looks complete.
  mkdirSync(cache, { recursive: true });
  const partial = mkdtempSync(join(cache, '.partial-'));
  try {
    await download(packages, partial);
    await keepWhatIsNeeded(partial);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return readKernel(folder);
}

/** @param {string} folder */
function isComplete(folder) {
  return existsSync(join(folder, 'vmlinux')) && existsSync(join(folder, 'order'));
}

/** @param {string} folder @returns {HostKernel} */
function readKernel(folder) {
  const order = readFileSync(join(folder, 'order'), 'utf8').split('\n').filter(Boolean);
  return { name: basename(folder), image: join(folder, 'vmlinux'), modules: order.map((name) => join(folder, name)) };
}

/**
 * The newest kernel's packages that apt can get: the image first, then its modules where they are apart.
 * @returns {Promise<{name: string, version: string}[] | undefined>}
 */
async function kernelPackages() {
  if (findProgram('apt-cache') === undefined) return undefined;
  for (const meta of metaPackages) {
    const image = (await dependencies(meta)).find((name) => /^linux-image-[0-9]/.test(name));
    if (image === undefined) continue;
    const modules = (await dependencies(image)).filter((name) => /^linux-modules-[0-9]/.test(name));
    const release = image.slice('linux-image-'.length);
    const names = [image, ...modules, `linux-modules-extra-${release}`];
    const found = await Promise.all(names.map(async (name) => ({ name, version: await candidate(name) })));
    return found.flatMap(({ name, version }) => (version === undefined ? [] : [{ name, version }]));
  }
  return undefined;
}

const plain = { ...process.env, LC_ALL: 'C' };

/** @param {string} name @returns {Promise<string[]>} */
async function dependencies(name) {
  const shown = await run('apt-cache', ['show', '--no-all-versions', name], { env: plain });
  const line = /^Depends: (.*)$/m.exec(shown.output)?.[1] ?? '';
  return line.split(/[,|]/).map((each) => each.trim().split(' ')[0] ?? '');
}

/** @param {string} name @returns {Promise<string | undefined>} */
async function candidate(name) {
  const policy = await run('apt-cache', ['policy', name], { env: plain });
  return /Candidate: ([^(\s]+)/.exec(policy.output)?.[1];
}

/** @param {readonly {name: string, version: string}[]} packages @param {string} folder */
async function download(packages, folder) {
  const names = packages.map(({ name, version }) => `${name}=${version}`);
  const got = await run('apt-get', ['-q', '-o', 'Acquire::Retries=3', 'download', ...names], {
    cwd: folder,
    env: plain,
    timeoutMs: 15 * 60_000,
  });
  if (got.status !== 0) throw noKernel(lastLines(got.output, 6));
  for (const archive of readdirSync(folder).filter((name) => name.endsWith('.deb'))) {
    const unpacked = await run('dpkg-deb', ['-x', archive, 'unpacked'], { cwd: folder, timeoutMs: 5 * 60_000 });
    if (unpacked.status !== 0) throw noKernel(lastLines(unpacked.output, 6));
    rmSync(join(folder, archive));
  }
}

/** @param {string} folder has `unpacked`; gets `vmlinux`, the modules and `order` */
async function keepWhatIsNeeded(folder) {
  const unpacked = join(folder, 'unpacked');
  const files = readdirSync(unpacked, { recursive: true, encoding: 'utf8' });
  const image = files.find((path) => /^boot\/vmlinuz-/.test(path));
  if (image === undefined) throw noKernel('the package has no boot/vmlinuz');
  const kernel = kernelInside(readFileSync(join(unpacked, image)));
  writeFileSync(join(folder, 'vmlinux.packed'), kernel);
  const ending = Object.keys(magics).find((each) =>
    kernel
      .subarray(0, 8)
      .toString('hex')
      .startsWith(magics[each] ?? ''),
  );
  if (ending === undefined) throw noKernel('its kernel is compressed in a way that is not known');
  writeFileSync(join(folder, 'vmlinux'), await decompressed(join(folder, 'vmlinux.packed'), ending));
  rmSync(join(folder, 'vmlinux.packed'));

  /** @type {Map<string, string>} */
  const byName = new Map();
  for (const path of files) {
    const name = /([^/]+)\.ko(\.(xz|zst|gz))?$/.exec(path)?.[1];
    if (name !== undefined) byName.set(name.replaceAll('-', '_'), join(unpacked, path));
  }
  /** @type {string[]} */
  const order = [];
  const add = async (/** @type {string} */ name) => {
    const path = byName.get(name);
    if (path === undefined || order.includes(`${name}.ko`)) return;
    const bytes = await decompressed(path);
    for (const needed of dependenciesOfModule(bytes)) await add(needed);
    writeFileSync(join(folder, `${name}.ko`), bytes);
    order.push(`${name}.ko`);
  };
  for (const name of wantedModules) await add(name);
  if (!order.includes('kvm_amd.ko')) throw noKernel('the package has no kvm-amd module');
  rmSync(unpacked, { recursive: true });
  writeFileSync(join(folder, 'order'), `${order.join('\n')}\n`);
}

/** Programs that decompress to standard output. @type {Readonly<Record<string, string>>} */
const decompressors = { '.xz': 'xz', '.zst': 'zstd', '.gz': 'gzip', '.lz4': 'lz4' };

/** First bytes of compressed data. @type {Readonly<Record<string, string>>} */
const magics = { '.xz': 'fd377a585a00', '.zst': '28b52ffd', '.gz': '1f8b', '.lz4': '02214c18' };

/** @param {string} path @param {string} [ending] the file's own if absent @returns {Promise<Buffer>} */
async function decompressed(path, ending = extname(path)) {
  const program = decompressors[ending];
  if (program === undefined) return readFileSync(path);
  const out = `${path}.plain`;
  const result = await run('sh', ['-c', `exec ${program} -dc <"$1" >"$2"`, 'sh', path, out]);
  if (result.status !== 0) throw noKernel(lastLines(result.output, 3), `apt-get install ${program}`);
  const bytes = readFileSync(out);
  rmSync(out);
  return bytes;
}

/**
 * The compressed ELF file inside a bzImage. Source: Documentation/x86/boot.rst of the kernel.
 * @param {Buffer} image
 * @returns {Buffer}
 */
export function kernelInside(image) {
  if (image.length < 0x260 || image.toString('latin1', 0x202, 0x206) !== 'HdrS')
    throw noKernel('its kernel is not a bzImage');
  const start = ((image.readUInt8(0x1f1) || 4) + 1) * 512 + image.readUInt32LE(0x248);
  // The last four bytes tell the size of what comes out.
  return image.subarray(start, start + image.readUInt32LE(0x24c) - 4);
}

/** The names in a module's `depends=` field. @param {Uint8Array} bytes of the module's ELF file @returns {string[]} */
export function dependenciesOfModule(bytes) {
  const text = Buffer.from(bytes).toString('latin1');
  const field = /\0depends=([^\0]*)\0/.exec(text)?.[1] ?? '';
  return field
    .split(',')
    .filter(Boolean)
    .map((name) => name.replaceAll('-', '_'));
}
