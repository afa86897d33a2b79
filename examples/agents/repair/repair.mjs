#!/usr/bin/env node
// Repair: a coding agent without a model. It runs the tests of a package, looks for one small change at a time that makes a
// failing test pass, and keeps it. Bough's example agent: it works without a network, a key or a person, and branches of it
// go different ways by their hints.
//
//   repair.mjs [--hint WORDS] [--seed N] [--budget SECONDS] [--folder DIR]
//
// Hint and seed come from BOUGH_HINT and BOUGH_BRANCH when no option says them. Exit status: 0 all tests pass, 1 no repair
// found, 2 wrong use or no tests, 3 out of time.
import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

import { runTestFile, runWholeSuite } from './run-tests.mjs';
import { describe, repairTestFile, undoUnjudged } from './search.mjs';
import { seedOfText, strategyOf } from './strategy.mjs';

const testTimeoutMs = 10_000;
const log = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);

/** @returns {number | undefined} */
function numberOf(/** @type {string | undefined} */ text, /** @type {string} */ option) {
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text)) throw new TypeError(`--${option} takes a whole number, not "${text}"`);
  return Number(text);
}

function options() {
  const { values } = parseArgs({
    options: {
      hint: { type: 'string' },
      seed: { type: 'string' },
      budget: { type: 'string' },
      folder: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  const hint = values.hint ?? process.env['BOUGH_HINT'] ?? '';
  const branch = process.env['BOUGH_BRANCH'];
  const ownSeed = branch && !/seed/i.test(hint) ? seedOfText(branch) : undefined;
  return {
    help: values.help === true,
    folder: values.folder ?? process.cwd(),
    strategy: strategyOf(hint, numberOf(values.seed, 'seed') ?? ownSeed),
    budgetMs: (numberOf(values.budget, 'budget') ?? 120) * 1000,
  };
}

/** Test files of node:test, as `node --test` finds the usual ones. */
function testFiles(/** @type {string} */ folder, /** @type {string} */ below = folder) {
  /** @type {string[]} */
  const found = [];
  for (const entry of readdirSync(below, { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.')) {
      found.push(...testFiles(folder, path));
    } else if (entry.isFile() && /\.test\.[cm]?js$/.test(entry.name)) {
      found.push(relative(folder, path));
    }
  }
  return found.sort();
}

async function main() {
  const { help, folder, strategy, budgetMs } = options();
  if (help) {
    log('repair.mjs [--hint WORDS] [--seed N] [--budget SECONDS] [--folder DIR]');
    return 0;
  }
  const files = existsSync(join(folder, 'package.json')) ? testFiles(folder) : [];
  if (files.length === 0) {
    process.stderr.write(`repair: ${folder} has no package.json with *.test.js files: run it in such a package\n`);
    return 2;
  }
  const startedMs = Date.now();
  const deadlineMs = startedMs + budgetMs;
  log(`repair: ${files.length} test files, strategy: ${strategy.name}`);
  let tries = 0;
  /** @type {string[]} */
  const kept = [];
  for (const file of files) {
    const { failed, broken } = await runTestFile(folder, file, testTimeoutMs);
    if (failed.length === 0 && !broken) continue;
    log(`\n${file}: ${broken ? 'does not run' : `${failed.length} failing`}`);
    const result = await repairTestFile({ folder, strategy, deadlineMs, testTimeoutMs, log }, file);
    tries += result.tries;
    kept.push(...result.kept.map(describe));
    if (!result.repaired) log(`  no single change repairs ${file}`);
  }
  const passes = await runWholeSuite(folder, testTimeoutMs * 6);
  log(`\n${passes ? 'done: npm test passes' : 'not done: npm test fails'}`);
  for (const change of kept) log(`  ${change}`);
  log(`${kept.length} changes, ${tries} tries, ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
  if (passes) return 0;
  return Date.now() > deadlineMs ? 3 : 1;
}

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    undoUnjudged();
    process.exit(130);
  });
}

main().then(
  (status) => {
    process.exitCode = status;
  },
  (error) => {
    undoUnjudged();
    process.stderr.write(`repair: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
  },
);
