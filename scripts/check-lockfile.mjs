// package-lock.json names no registry host, knows a digest for each package, and package.json pins exact versions.
//   node scripts/check-lockfile.mjs
// Used by scripts/lint.mjs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';
import { runMain } from './report.mjs';

/**
 * @param {{packages?: Record<string, {resolved?: string, integrity?: string, link?: boolean}>}} lock
 * @param {{dependencies?: Record<string, string>, devDependencies?: Record<string, string>}} manifest
 * @returns {string[]} one message for each thing that is wrong
 */
export function lockfileProblems(lock, manifest) {
  /** @type {string[]} */
  const problems = [];
  for (const [path, entry] of Object.entries(lock.packages ?? {})) {
    if (path === '') continue;
    if (entry.resolved !== undefined) problems.push(`${path}: resolved names a place: ${entry.resolved}`);
    if (entry.integrity === undefined && !entry.link) problems.push(`${path}: no integrity`);
  }
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) problems.push(`package.json: ${name} is not pinned: ${version}`);
  }
  return problems;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(() => {
    const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
    const problems = lockfileProblems(read('package-lock.json'), read('package.json'));
    for (const line of problems) console.error(line);
    if (problems.length > 0) console.error('fix: rm package-lock.json && npm install --ignore-scripts');
    return Promise.resolve(problems.length === 0 ? 0 : 1);
  });
}
