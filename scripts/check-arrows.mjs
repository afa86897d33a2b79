// Who may use whom: the arrows of docs/architecture.md, checked on TypeScript imports and C++ includes.
//   node scripts/check-arrows.mjs
// Used by scripts/lint.mjs.
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root } from './processes.mjs';
import { runMain } from './report.mjs';
import { projectFiles } from './sources.mjs';

/** What every service of the helper stands on. */
const below = [
  'helper/protocol/',
  'helper/native/',
  'helper/state/',
  'helper/agents/',
  'helper/files/',
  'helper/machines/',
];
const services = ['helper/', 'helper/doctor/'];

/**
 * The parts of the project; a file belongs to the longest prefix that it starts with. `uses` names the parts it may
 * import besides its own. `vscode` says whether the editor's API may be imported.
 * @type {Readonly<Record<string, {uses: readonly string[], vscode?: boolean}>>}
 */
export const parts = {
  'helper/protocol/': { uses: [] },
  'helper/native/': { uses: [] },
  'helper/files/': { uses: ['helper/protocol/', 'helper/native/', 'helper/state/'] },
  'helper/machines/': {
    uses: ['helper/protocol/', 'helper/native/', 'helper/files/', 'helper/agents/', 'helper/state/'],
  },
  'helper/state/': { uses: ['helper/protocol/', 'helper/native/'] },
  'helper/agents/': { uses: ['helper/protocol/', 'helper/native/', 'helper/state/'] },
  'helper/doctor/': { uses: below },
  // The faces: thin, over the services; the services never know them.
  'helper/api/': { uses: [...below, ...services] },
  'helper/cli/': { uses: [...below, 'helper/api/', 'helper/doctor/'] },
  // Where the daemon is put together.
  'helper/main': { uses: [...below, ...services, 'helper/api/'] },
  // Everything else of the helper is a service.
  'helper/': { uses: [...below, 'helper/doctor/'] },
  'extension/webview/': { uses: ['helper/protocol/'] },
  'extension/': { uses: ['helper/protocol/'], vscode: true },
  'webview/': { uses: ['helper/protocol/'] },
  'examples/': { uses: ['helper/protocol/'] },
  'bench/': { uses: ['helper/*', 'test/'] },
  'test/electron/': { uses: ['helper/*', 'test/', 'extension/'], vscode: true },
  'test/': { uses: ['helper/*', 'extension/', 'scripts/'] },
  'scripts/': { uses: [] },
  'native/common/': { uses: [] },
  'native/branchfs/': { uses: ['native/common/'] },
  'native/vmm/': { uses: ['native/common/'] },
  'native/guest/': { uses: ['native/common/'] },
  'native/addon/': { uses: ['native/common/'] },
};

/** @param {string} path relative to the root @returns {string | undefined} */
export function partOf(path) {
  return Object.keys(parts)
    .filter((prefix) => path.startsWith(prefix))
    .sort((a, b) => b.length - a.length)[0];
}

/**
 * What a file imports: module specifiers of TypeScript, or quoted includes of C++.
 * @param {string} path
 * @param {string} text
 * @returns {string[]}
 */
export function importsOf(path, text) {
  const pattern = /\.(cc|h)$/.test(path)
    ? /^\s*#\s*include\s+"([^"]+)"/gm
    : /^\s*(?:import|export)\b[^'";]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm;
  return [...text.matchAll(pattern)].map((m) => m[1] ?? m[2] ?? m[3] ?? '');
}

/**
 * The file inside the project that a specifier means, or undefined for a package or a system header.
 * @param {string} path
 * @param {string} specifier
 * @returns {string | undefined}
 */
function target(path, specifier) {
  if (/\.(cc|h)$/.test(path)) {
    // Includes are written from native/, or from the file's own folder.
    const fromNative = normalize(join('native', specifier));
    return partOf(fromNative) === undefined ? normalize(join(dirname(path), specifier)) : fromNative;
  }
  return specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : undefined;
}

/**
 * The arrows that a file breaks, one message each.
 * @param {string} path relative to the root
 * @param {string} text
 * @returns {string[]}
 */
export function brokenArrows(path, text) {
  const from = partOf(path);
  if (from === undefined) return [];
  const rule = /** @type {{uses: readonly string[], vscode?: boolean}} */ (parts[from]);
  /** @type {string[]} */
  const broken = [];
  for (const specifier of importsOf(path, text)) {
    if (specifier === 'vscode' && !rule.vscode) broken.push(`${path}: ${from} may not import vscode`);
    const used = target(path, specifier);
    const to = used === undefined ? undefined : partOf(used);
    if (to === undefined || to === from || rule.uses.includes(to)) continue;
    if (rule.uses.some((allowed) => allowed.endsWith('*') && to.startsWith(allowed.slice(0, -1)))) continue;
    broken.push(`${path}: ${from} may not use ${to} (${specifier})`);
  }
  return broken;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    const files = await projectFiles(/\.(ts|mts|mjs|cc|h)$/);
    const broken = files
      .filter((path) => !path.startsWith('test/fixtures/'))
      .flatMap((path) => {
        // A unit test stands beside its code and may look at everything that it needs.
        return /\.test\.ts$/.test(path) ? [] : brokenArrows(path, readFileSync(join(root, path), 'utf8'));
      });
    for (const line of broken) console.error(line);
    console.log(`${files.length} files, ${broken.length} broken arrows`);
    return broken.length === 0 ? 0 : 1;
  });
}
