// The extension in a desktop VS Code: it activates, its commands are there, its API answers. Skipped where no desktop VS
// Code can be downloaded or shown; the end-to-end suite runs the same extension in the browser everywhere.
//   npx tsx test/electron/main.ts
// The last line says `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { downloadAndUnzipVSCode, runTests } from '@vscode/test-electron';

const VERSION = '1.100.3';
const root = fileURLToPath(new URL('../..', import.meta.url));

function skip(why: string): number {
  console.log(why);
  console.log('0 passed, 0 failed, 1 skipped');
  return 0;
}

async function editorProgram(): Promise<string | undefined> {
  try {
    // One attempt, with an end: a machine without the network must not wait for it.
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, 240_000, undefined).unref());
    const download = downloadAndUnzipVSCode({
      version: VERSION,
      cachePath: path.join(tmpdir(), 'bough-vscode-test'),
      timeout: 20_000,
    });
    return await Promise.race([download, late]);
  } catch {
    return undefined;
  }
}

async function main(): Promise<number> {
  if (process.env['DISPLAY'] === undefined && process.env['WAYLAND_DISPLAY'] === undefined) {
    return skip('ELECTRON_NO_DISPLAY: there is no display to open a desktop VS Code on');
  }
  const extension = path.join(root, 'build', 'extension');
  const packed = spawnSync(process.execPath, [path.join(root, 'scripts', 'vsix.mjs')], { encoding: 'utf8' });
  if (packed.status !== 0 || !existsSync(extension)) {
    console.log(packed.stdout + packed.stderr);
    console.log('0 passed, 1 failed, 0 skipped');
    return 1;
  }
  const program = await editorProgram();
  if (program === undefined) return skip(`ELECTRON_NO_DOWNLOAD: VS Code ${VERSION} cannot be downloaded here`);
  const world = mkdtempSync(path.join(tmpdir(), 'bel-'));
  try {
    const folder = path.join(world, 'folder');
    mkdirSync(folder);
    writeFileSync(path.join(folder, 'a.txt'), 'a\n');
    mkdirSync(path.join(world, 'run'), { mode: 0o700 });
    await runTests({
      vscodeExecutablePath: program,
      extensionDevelopmentPath: extension,
      extensionTestsPath: path.join(root, 'test', 'electron', 'inside.cjs'),
      launchArgs: [
        folder,
        '--no-sandbox',
        '--disable-gpu',
        '--disable-workspace-trust',
        `--user-data-dir=${path.join(world, 'data')}`,
      ],
      extensionTestsEnv: { XDG_RUNTIME_DIR: path.join(world, 'run'), XDG_STATE_HOME: path.join(world, 'state') },
    });
    console.log('1 passed, 0 failed, 0 skipped');
    return 0;
  } catch (error) {
    console.log(error instanceof Error ? error.message : JSON.stringify(error));
    console.log('0 passed, 1 failed, 0 skipped');
    return 1;
  } finally {
    rmSync(world, { recursive: true, force: true });
  }
}

process.exitCode = await main();
