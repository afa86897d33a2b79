// The real VS Code: code-server with the packed extension installed, one per world. Used by harness.ts.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { until } from './wait.js';
import type { World } from './world.js';

/** What differs from a fresh VS Code, and only so that the tests can read the screen. */
const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.reduceMotion': 'on',
  'workbench.tips.enabled': false,
  'workbench.enableExperiments': false,
  'workbench.colorTheme': 'Default Dark Modern',
  'window.commandCenter': false,
  // Terminal text as text in the page.
  'terminal.integrated.gpuAcceleration': 'off',
  'git.openRepositoryInParentFolders': 'never',
  'git.autofetch': false,
  'extensions.ignoreRecommendations': true,
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'telemetry.telemetryLevel': 'off',
  'update.mode': 'none',
  // Code typed by a test must arrive as typed.
  'editor.autoClosingBrackets': 'never',
  'editor.autoClosingQuotes': 'never',
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.suggestOnTriggerCharacters': false,
  'editor.acceptSuggestionOnEnter': 'off',
  'editor.minimap.enabled': false,
  // The way to a branch's folder through the store is long.
  'breadcrumbs.filePath': 'last',
  'editor.accessibilitySupport': 'off',
  'files.autoSave': 'off',
};

export interface CodeServer {
  readonly url: string;
  readonly logFile: string;
  stop(): Promise<void>;
}

/** Installs the VSIX once into `extensions`, as a person would; the worlds share it. */
export async function installExtension(entry: string, vsix: string, extensions: string, world: World): Promise<void> {
  const args = [
    entry,
    '--install-extension',
    vsix,
    '--extensions-dir',
    extensions,
    '--user-data-dir',
    path.join(world.root, 'install'),
  ];
  await promisify(execFile)(process.execPath, args, { env: world.env, timeout: 300_000 });
}

/** Its two processes give each other ten seconds to greet and then end: on a very busy machine it is started again. */
async function startOnce(
  args: readonly string[],
  logFile: string,
  world: World,
): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const log = openSync(logFile, 'w');
  const child = spawn(process.execPath, args, { cwd: world.root, env: world.env, stdio: ['ignore', log, log] });
  closeSync(log);
  const url = await until(
    'code-server to listen or to end',
    () => {
      const address = /HTTP server listening on (http:\/\/[^\s/]+)/.exec(readFileSync(logFile, 'utf8'))?.[1];
      return address ?? (child.exitCode === null ? undefined : 'ended');
    },
    60_000,
  );
  if (url === 'ended') throw new Error(`code-server ended with ${child.exitCode}: ${readFileSync(logFile, 'utf8')}`);
  return { child, url };
}

export async function startCodeServer(
  entry: string,
  extensions: string,
  world: World,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<CodeServer> {
  const data = path.join(world.root, 'data');
  mkdirSync(path.join(data, 'User'), { recursive: true });
  writeFileSync(path.join(data, 'User', 'settings.json'), JSON.stringify({ ...SETTINGS, ...settings }, undefined, 2));
  const logFile = path.join(world.root, 'code-server.log');
  const args = [
    entry,
    '--auth',
    'none',
    '--bind-addr',
    '127.0.0.1:0',
    '--user-data-dir',
    data,
    '--extensions-dir',
    extensions,
    '--disable-telemetry',
    '--disable-update-check',
    '--disable-workspace-trust',
    '--disable-getting-started-override',
  ];
  const { child, url } = await until('code-server to listen', () => startOnce(args, logFile, world), 180_000);
  return {
    url,
    logFile,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const killer = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(killer);
    },
  };
}
