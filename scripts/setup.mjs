// Makes a fresh Debian or Ubuntu machine able to build, start and test Bough, and does nothing where nothing is missing.
//   node scripts/setup.mjs [--for build,editor,test,machine] [--yes]
// Used by `npm start` and `npm test`; each names what it needs.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { buildBundles, buildNative, programs } from './build.mjs';
import { findProgram, missingPackages, systemPackages } from './packages.mjs';
import { lastLines, root, run } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';

/**
 * @typedef {object} SetUpOptions
 * @property {readonly import('./packages.mjs').Purpose[]} purposes
 * @property {boolean} yes do not ask before packages are installed
 */

/**
 * @param {SetUpOptions} options
 * @returns {Promise<{missing: import('./packages.mjs').SystemPackage[]}>} optional packages that could not be had
 */
export async function setUp(options) {
  const steps = new Steps('Set-up');
  await steps.run('Node.js', (note) => {
    const major = Number(process.versions.node.split('.')[0]);
    if (major < 20) {
      throw new SetupError(
        'BOUGH_SETUP_NODE_OLD',
        'Node.js is too old',
        `this is ${process.version}, Bough needs 20 or newer`,
        'install Node.js 20 or newer and run the command again',
      );
    }
    note(process.version);
  });
  const missing = await steps.run('System packages', (note) => ensureSystemPackages(options, note));
  await steps.run('Node packages', ensureNodeModules);
  await steps.run('JavaScript bundles', buildBundles);
  await steps.run('Native programs', () => buildNative('release', programs));
  return { missing };
}

/**
 * @param {SetUpOptions} options
 * @param {(text: string) => void} note
 */
async function ensureSystemPackages(options, note) {
  const wanted = systemPackages.filter((p) => options.purposes.includes(p.purpose));
  const missing = await missingPackages(wanted);
  if (missing.length === 0) {
    note('nothing missing');
    return [];
  }
  const required = missing.filter((p) => !p.optional);
  if (findProgram('apt-get') === undefined) {
    if (required.length > 0) {
      throw new SetupError(
        'BOUGH_SETUP_NO_APT',
        'Programs or libraries are missing',
        `apt-get is not on this machine and these are not installed: ${required.map((p) => p.name).join(', ')}`,
        "install them by your distribution's own means (the names are Debian's) and run the command again",
      );
    }
    note(`without ${missing.map((p) => p.name).join(', ')}`);
    return missing;
  }

  const asRoot = process.getuid?.() === 0;
  await askBeforeInstalling(missing, options.yes || asRoot || Boolean(process.env['CI']));
  const apt = aptRunner(asRoot);
  // Several tries: a mirror that answers late must not fail the whole run.
  await attempts(3, () => apt(['update', '-qq']));
  if (required.length > 0) await attempts(3, () => apt(installArguments(required.map((p) => p.name))));

  // Not every release has each of the optional ones; what is there is installed, the rest is told.
  for (const p of missing.filter((each) => each.optional)) {
    const policy = await run('apt-cache', ['policy', p.name], { env: { ...process.env, LC_ALL: 'C' } });
    if (!/Candidate: [^(]/.test(policy.output)) continue;
    await attempts(2, () => apt(installArguments([p.name]))).catch(() => undefined);
  }
  const still = await missingPackages(missing);
  note(`installed ${missing.length - still.length}`);
  if (still.length > 0) note(`not available: ${still.map((p) => p.name).join(', ')}`);
  return still;
}

/** @param {readonly string[]} names */
function installArguments(names) {
  return ['install', '-y', '-qq', '--no-install-recommends', ...names];
}

/** @param {readonly import('./packages.mjs').SystemPackage[]} missing @param {boolean} agreed */
async function askBeforeInstalling(missing, agreed) {
  if (agreed) return;
  const list = missing.map((p) => `  ${p.name.padEnd(20)} ${p.why}`).join('\n');
  const refuse = (/** @type {string} */ why) =>
    new SetupError(
      'BOUGH_SETUP_NOT_ALLOWED',
      'System packages are missing',
      why,
      `install them yourself: sudo apt-get install ${missing.map((p) => p.name).join(' ')}\n       or run the command again with --yes`,
    );
  if (!process.stdin.isTTY) throw refuse('there is no terminal to ask on');
  const prompt = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await prompt.question(
    `\nThese packages are missing:\n${list}\nInstall them with sudo apt-get? [y/N] `,
  );
  prompt.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw refuse('you chose not to install them');
}

/** @param {boolean} asRoot @returns {(args: readonly string[]) => Promise<void>} */
function aptRunner(asRoot) {
  return async (args) => {
    const command = ['apt-get', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3', ...args];
    if (!asRoot) command.unshift('sudo', 'DEBIAN_FRONTEND=noninteractive');
    const [program = '', ...rest] = command;
    const result = await run(program, rest, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
      timeoutMs: 20 * 60_000,
    });
    if (result.status !== 0) {
      throw new SetupError(
        'BOUGH_SETUP_APT',
        `apt-get ${args[0]} failed`,
        lastLines(result.output, 8),
        `see whether this works by itself: apt-get ${args.join(' ')}`,
      );
    }
  };
}

/** @param {number} count @param {() => Promise<void>} work */
async function attempts(count, work) {
  for (let left = count - 1; ; left--) {
    try {
      return await work();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 3000));
    }
  }
}

/** What node_modules was installed from; changes when the lock file or the platform does. */
function lockStamp() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
  return hash.update(`${process.platform} ${process.arch}`).digest('hex');
}

/** @param {(text: string) => void} note */
async function ensureNodeModules(note) {
  const stampFile = join(root, 'node_modules', '.bough-lock');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === lockStamp()) {
    note('up to date');
    return;
  }
  await attempts(3, async () => {
    const result = await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { timeoutMs: 15 * 60_000 });
    if (result.status !== 0) {
      throw new SetupError(
        'BOUGH_SETUP_NPM',
        'npm ci failed',
        lastLines(result.output, 12),
        'check the connection to the package registry (npm ping) and run the command again',
      );
    }
  });
  writeFileSync(stampFile, lockStamp());
  note('installed');
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    const { values } = parseArgs({
      options: { for: { type: 'string', default: 'build' }, yes: { type: 'boolean', default: false } },
    });
    const purposes = /** @type {import('./packages.mjs').Purpose[]} */ (values.for.split(','));
    await setUp({ purposes: ['build', ...purposes], yes: values.yes });
  });
}
