// Builds Bough: JavaScript bundles into dist/, native programs into build/release/.
//   node scripts/build.mjs [--bundles | --native]
// Used by `npm run build` and by set-up, which imports it before node_modules exists: esbuild is loaded late.
import { chmodSync, existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { lastLines, root, run } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';

/** Packages that cannot be bundled because they load a binary from their own folder. scripts/vsix.mjs packs them. */
export const unbundled = ['lmdb'];

/** Bundled CommonJS packages expect these to be there. */
const commonJsNames = [
  "import { createRequire as boughCreateRequire } from 'node:module';",
  "import { fileURLToPath as boughFileURLToPath } from 'node:url';",
  "import { dirname as boughDirname } from 'node:path';",
  'const require = boughCreateRequire(import.meta.url);',
  'const __filename = boughFileURLToPath(import.meta.url);',
  'const __dirname = boughDirname(__filename);',
].join('\n');

const command = 'dist/bough.js';

/** @type {readonly {entry: string, out: string, options: import('esbuild').BuildOptions}[]} */
export const bundles = [
  {
    entry: 'helper/main.ts',
    out: 'dist/helper.js',
    options: { format: 'esm', platform: 'node', target: 'node20', banner: { js: commonJsNames }, external: unbundled },
  },
  {
    entry: 'helper/cli/main.ts',
    out: command,
    options: {
      format: 'esm',
      platform: 'node',
      target: 'node20',
      banner: { js: `#!/usr/bin/env node\n${commonJsNames}` },
      external: unbundled,
    },
  },
  {
    entry: 'extension/extension.ts',
    out: 'dist/extension.cjs',
    options: { format: 'cjs', platform: 'node', target: 'node20', external: ['vscode'] },
  },
  {
    entry: 'extension/webview/main.ts',
    out: 'dist/webview.js',
    options: { format: 'iife', platform: 'browser', target: 'es2022' },
  },
];

/** @param {(text: string) => void} [note] */
export async function buildBundles(note) {
  const esbuild = await import('esbuild');
  const present = bundles.filter((b) => existsSync(join(root, b.entry)));
  for (const bundle of present) {
    try {
      await esbuild.build({
        absWorkingDir: root,
        entryPoints: [bundle.entry],
        outfile: bundle.out,
        bundle: true,
        sourcemap: true,
        legalComments: 'linked',
        logLevel: 'silent',
        ...bundle.options,
      });
    } catch (error) {
      const messages = /** @type {import('esbuild').BuildFailure} */ (error).errors ?? [];
      const lines = messages.map((m) => `${m.location?.file ?? ''}:${m.location?.line ?? ''} ${m.text}`);
      throw new SetupError(
        'BOUGH_BUILD_BUNDLE',
        `${bundle.out} could not be bundled`,
        lines.join('\n       ') || String(error),
        'mend the source, then: npm run build',
      );
    }
  }
  if (present.some((b) => b.out === command)) linkCommand();
  note?.(present.map((b) => b.out).join(', ') || 'no entry point yet');
}

/** `npx bough` in the checkout finds the command in node_modules/.bin; npm links dependencies there, not the project itself. */
function linkCommand() {
  chmodSync(join(root, command), 0o755);
  const link = join(root, 'node_modules', '.bin', 'bough');
  rmSync(link, { force: true });
  symlinkSync(join('..', '..', command), link);
}

/** What runs beside the bundles; everything else that CMake builds are tests. */
export const programs = ['boughfs', 'boughvm', 'bough_addon', 'bough-init', 'initramfs'];

/** @param {string} preset a configure preset of CMakePresets.json that has a build preset of the same name */
export async function configureNative(preset) {
  const configured = await run('cmake', ['--preset', preset], { timeoutMs: 5 * 60_000 });
  if (configured.status !== 0) {
    throw new SetupError(
      'BOUGH_BUILD_CONFIGURE',
      `CMake could not configure the preset ${preset}`,
      lastLines(configured.output, 20),
      `see it whole with: cmake --preset ${preset} (a stale build/${preset} can be removed)`,
    );
  }
}

/** @param {string} preset @param {readonly string[]} [targets] everything if absent */
export async function buildNative(preset, targets) {
  await configureNative(preset);
  const jobs = ['-j', String(availableParallelism())];
  const only = targets === undefined ? [] : ['--target', ...targets];
  const built = await run('cmake', ['--build', '--preset', preset, ...jobs, ...only], { timeoutMs: 90 * 60_000 });
  if (built.status !== 0) {
    throw new SetupError(
      'BOUGH_BUILD_NATIVE',
      `The native programs did not compile (preset ${preset})`,
      built.timedOut ? 'it took more than 90 minutes' : lastLines(built.output, 40),
      `see it whole with: cmake --build --preset ${preset}`,
    );
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    const { values } = parseArgs({ options: { bundles: { type: 'boolean' }, native: { type: 'boolean' } } });
    const all = !values.bundles && !values.native;
    const steps = new Steps('Build');
    if (all || values.bundles) await steps.run('JavaScript bundles', buildBundles);
    if (all || values.native) await steps.run('Native programs', () => buildNative('release', programs));
  });
}
