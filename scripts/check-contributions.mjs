// What package.json promises to the editor and what the source does must be the same: commands, settings, menus, texts.
//   node scripts/check-contributions.mjs
// Used by scripts/lint.mjs.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';
import { runMain } from './report.mjs';
import { projectFiles } from './sources.mjs';

/**
 * All objects inside a JSON value, the value itself first.
 * @param {unknown} value
 * @returns {Generator<Record<string, unknown>>}
 */
function* objects(value) {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield /** @type {Record<string, unknown>} */ (value);
  for (const inner of Object.values(value)) yield* objects(inner);
}

/** @param {unknown} value @returns {Generator<string>} all strings inside a JSON value */
function* strings(value) {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) yield* strings(inner);
}

/** @param {Record<string, unknown>} contributes @returns {string[]} */
function settingsOf(contributes) {
  const configuration = contributes['configuration'] ?? [];
  const groups = /** @type {{properties?: Record<string, unknown>}[]} */ (
    Array.isArray(configuration) ? configuration : [configuration]
  );
  return groups.flatMap((group) => Object.keys(group.properties ?? {}));
}

/**
 * @param {Record<string, unknown>} manifest package.json
 * @param {Record<string, unknown>} texts package.nls.json
 * @param {string} source all TypeScript of the extension
 * @returns {string[]} one message for each thing that does not fit
 */
export function contributionProblems(manifest, texts, source) {
  const contributes = /** @type {Record<string, unknown>} */ (manifest['contributes'] ?? {});
  /** @type {string[]} */
  const problems = [];

  const declared = new Set(
    /** @type {{command: string}[]} */ (contributes['commands'] ?? []).map((entry) => entry.command),
  );
  const registered = registeredCommands(source);
  for (const id of declared) if (!registered.has(id)) problems.push(`command ${id} is declared but never registered`);
  for (const id of registered) if (!declared.has(id)) problems.push(`command ${id} is registered but not declared`);

  // Menus, key bindings, walkthrough and views name commands too. Other extensions' commands are none of ours.
  for (const [place, value] of Object.entries(contributes)) {
    if (place === 'commands') continue;
    for (const object of objects(value)) {
      const id = object['command'];
      if (typeof id === 'string' && id.startsWith('bough.') && !declared.has(id)) {
        problems.push(`${place} names the command ${id}, which is not declared`);
      }
    }
    for (const text of strings(value)) {
      for (const [, id = ''] of text.matchAll(/\(command:(bough\.[\w.]+)/g)) {
        if (!declared.has(id)) problems.push(`${place} links to the command ${id}, which is not declared`);
      }
    }
  }

  const settings = new Set(settingsOf(contributes));
  for (const name of settings) {
    const key = name.replace(/^bough\./, '');
    if (!new RegExp(`['"\`](?:bough\\.)?${key.replaceAll('.', '\\.')}['"\`]`).test(source)) {
      problems.push(`setting ${name} is declared but never read`);
    }
  }

  const keys = new Set([...strings(manifest)].flatMap((text) => /^%([^%]+)%$/.exec(text)?.[1] ?? []));
  for (const key of keys) if (!(key in texts)) problems.push(`text %${key}% is not in package.nls.json`);
  for (const key of Object.keys(texts))
    if (!keys.has(key)) problems.push(`text ${key} of package.nls.json is never used`);
  return problems;
}

/**
 * Ids that the source registers: by `registerCommand('bough.x'` or as `id: 'bough.x'` or `'bough.x':` of a command table.
 * @param {string} source
 * @returns {Set<string>}
 */
export function registeredCommands(source) {
  const ids = new Set();
  for (const pattern of [
    /register(?:TextEditor)?Command\(\s*['"](bough\.[\w.]+)['"]/g,
    /\bcommand\(\s*['"](bough\.[\w.]+)['"]/g,
  ]) {
    for (const match of source.matchAll(pattern)) ids.add(match[1]);
  }
  return ids;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
    const files = await projectFiles(/^extension\/.*(?<!\.test)\.ts$/);
    const source = files.map((path) => readFileSync(join(root, path), 'utf8')).join('\n');
    const texts = existsSync(join(root, 'package.nls.json')) ? read('package.nls.json') : {};
    const problems = contributionProblems(read('package.json'), texts, source);
    for (const line of problems) console.error(line);
    return problems.length === 0 ? 0 : 1;
  });
}
