// The search itself: for each test file that fails, change the code under test one place at a time, keep what makes fewer
// tests fail and none more, go on until they pass. Used by repair.mjs.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

import { distances, functionsOf, wordsOfTest } from './functions.mjs';
import { mutationsOf } from './mutations.mjs';
import { runTestFile } from './run-tests.mjs';
import { ordered } from './strategy.mjs';

/** @typedef {import('./run-tests.mjs').TestResult} TestResult */
/** @typedef {import('./mutations.mjs').Mutation & { file: string, distance: number }} Candidate */

/**
 * @typedef {object} Search
 * @property {string} folder absolute
 * @property {import('./strategy.mjs').Strategy} strategy
 * @property {number} deadlineMs as Date.now() counts
 * @property {number} testTimeoutMs
 * @property {(line: string) => void} log
 */

/** The file that holds a change which nobody has judged yet; a signal must not leave it behind. */
/** @type {{ path: string, source: string } | undefined} */
let unjudged;

/** Puts the file under trial back as it was. Called when the agent is told to end. */
export function undoUnjudged() {
  if (unjudged) writeFileSync(unjudged.path, unjudged.source);
  unjudged = undefined;
}

/**
 * @param {Search} search
 * @param {string} testFile path in the folder
 * @returns {Promise<{ repaired: boolean, kept: Candidate[], tries: number }>}
 */
export async function repairTestFile(search, testFile) {
  /** @type {Candidate[]} */
  const kept = [];
  let tries = 0;
  let now = await runTestFile(search.folder, testFile, search.testTimeoutMs);
  while (now.failed.length > 0 || now.broken) {
    for (const { name } of now.failed) search.log(`  ✗ ${name}`);
    const candidates = ordered(candidatesFor(search.folder, testFile, now), search.strategy);
    const round = await bestOf(search, testFile, candidates, now);
    tries += round.tries;
    if (!round.best) return { repaired: false, kept, tries };
    apply(search.folder, round.best.candidate);
    kept.push(round.best.candidate);
    now = round.best.result;
    search.log(`  keep ${describe(round.best.candidate)}`);
  }
  return { repaired: true, kept, tries };
}

/**
 * The first candidate with which the whole file passes, else the one that leaves the fewest failures.
 *
 * @param {Search} search
 * @param {string} testFile
 * @param {readonly Candidate[]} candidates
 * @param {TestResult} now
 */
async function bestOf(search, testFile, candidates, now) {
  /** @type {{ candidate: Candidate, result: TestResult } | undefined} */
  let best;
  let tries = 0;
  for (const candidate of candidates) {
    if (Date.now() > search.deadlineMs) break;
    tries++;
    const result = await tryOne(search, testFile, candidate);
    search.log(`  try ${String(tries).padStart(3)}  ${describe(candidate)}  ${verdict(result)}`);
    if (!isBetter(result, now)) continue;
    if (!best || result.failed.length < best.result.failed.length) best = { candidate, result };
    if (result.failed.length === 0) break;
  }
  return { best, tries };
}

/** Fewer tests fail, and none that passed before. */
function isBetter(/** @type {TestResult} */ result, /** @type {TestResult} */ before) {
  if (result.broken || result.timedOut || result.failed.length >= before.failed.length) return false;
  const known = new Set(before.failed.map(({ name }) => name));
  return result.passed > before.passed && result.failed.every(({ name }) => known.has(name));
}

/** @returns {Promise<TestResult>} */
async function tryOne(
  /** @type {Search} */ search,
  /** @type {string} */ testFile,
  /** @type {Candidate} */ candidate,
) {
  const path = join(search.folder, candidate.file);
  const source = readFileSync(path, 'utf8');
  unjudged = { path, source };
  try {
    apply(search.folder, candidate);
    return await runTestFile(search.folder, testFile, search.testTimeoutMs);
  } finally {
    undoUnjudged();
  }
}

function apply(/** @type {string} */ folder, /** @type {Candidate} */ { file, start, end, after }) {
  const path = join(folder, file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, source.slice(0, start) + after + source.slice(end));
}

/** Changes of what the failing tests reach, with how far away each is. */
function candidatesFor(/** @type {string} */ folder, /** @type {string} */ testFile, /** @type {TestResult} */ now) {
  const test = readFileSync(join(folder, testFile), 'utf8');
  const words = new Set(now.failed.flatMap(({ line }) => wordsOfTest(test, line)));
  return codeUnderTest(folder, testFile).flatMap((file) => {
    const source = readFileSync(join(folder, file), 'utf8');
    const functions = functionsOf(source);
    const near = distances(functions, words);
    return mutationsOf(source).map((mutation) => {
      const around = functions.filter((at) => at.start <= mutation.start && mutation.end <= at.end);
      const distance = Math.min(...around.map((at) => near.get(at) ?? functions.length), functions.length + 1);
      return { ...mutation, file, distance };
    });
  });
}

/**
 * Files that a test imports by relative paths, and what these import, nearest first. Test files and modules are left out.
 *
 * @param {string} folder
 * @param {string} testFile
 * @returns {string[]} paths in the folder
 */
export function codeUnderTest(folder, testFile) {
  const seen = new Set([testFile]);
  for (const file of seen) {
    const source = readFileSync(join(folder, file), 'utf8');
    for (const [, specifier = ''] of source.matchAll(/\bfrom\s*['"](\.[^'"]+)['"]/g)) {
      const path = relative(folder, resolve(folder, dirname(file), specifier));
      if (/\.[cm]?js$/.test(path) && !path.startsWith('..') && !path.includes('node_modules')) seen.add(path);
    }
  }
  return [...seen].filter((file) => !/\.test\.[cm]?js$/.test(file));
}

/** `src/pages.js:31  number → (number - 1)`. */
export function describe(/** @type {Candidate} */ { file, line, before, after }) {
  return `${file}:${line}  ${before} → ${after === '' ? 'nothing' : after}`;
}

function verdict(/** @type {TestResult} */ { failed, passed, timedOut, broken }) {
  if (timedOut) return 'does not end';
  if (broken) return 'does not run';
  return failed.length === 0 ? `all ${passed} pass` : `${failed.length} of ${failed.length + passed} fail`;
}
