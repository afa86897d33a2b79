// C++ format, and with --tidy clang-tidy over every C++ file of native/ that the preset release compiles, whatever folder it is in.
//   node scripts/check-cpp.mjs [--tidy [part of a path]]
// Used by scripts/lint.mjs (format), and by `npm run tidy` and the suite of that name: its last line is
// `N passed, N failed, N skipped`, counted in files.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { configureNative } from './build.mjs';
import { summaryLine } from './count.mjs';
import { findProgram } from './packages.mjs';
import { root, run } from './processes.mjs';
import { runMain, SetupError } from './report.mjs';
import { projectFiles } from './sources.mjs';

/** A file and its headers that were found clean are not looked at again until one of them, the checks or the compiler's options change. */
const cleanFolder = join(root, 'build', 'tidy');

/** Too dear for what they find in tests, which run under sanitizers. */
const notInTests = ['bugprone-use-after-move', 'bugprone-unused-raii', 'performance-*'];

/** @param {string} program */
function requireProgram(program) {
  if (findProgram(program) !== undefined) return;
  throw new SetupError(
    'BOUGH_CHECK_TOOL_MISSING',
    `${program} is not installed`,
    'it is not in PATH',
    `apt-get install ${program}`,
  );
}

async function checkFormat() {
  requireProgram('clang-format-19');
  const files = await projectFiles(/^native\/.*\.(cc|h)$/);
  if (files.length === 0) return 0;
  const result = await run('clang-format-19', ['--dry-run', '--Werror', ...files], { show: true });
  if (result.status !== 0) console.error('fix: npm run format');
  return result.status ?? 1;
}

/** @param {string} wanted part of a path */
async function tidy(wanted) {
  requireProgram('clang-tidy-19');
  await configureNative('release');
  mkdirSync(cleanFolder, { recursive: true });
  const version = (await run('clang-tidy-19', ['--version'])).output;
  const rules = version + readFileSync(join(root, '.clang-tidy'), 'utf8') + notInTests.join();
  const commands = compileCommands();
  const files = [...commands.keys()].filter((file) => file.includes(wanted));
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const file of await projectFiles(/^native\/.*\.cc$/)) {
    if (commands.has(file) || !file.includes(wanted)) continue;
    counts.skipped++;
    console.log(`skipped ${file}: the preset release does not compile it`);
  }
  const work = async () => {
    for (let file = files.shift(); file !== undefined; file = files.shift()) {
      const stamp = join(cleanFolder, keyOf(file, rules + (commands.get(file) ?? '')));
      const result = existsSync(stamp) ? undefined : await run('clang-tidy-19', tidyArguments(file));
      if (result === undefined || result.status === 0) {
        counts.passed++;
        writeFileSync(stamp, '');
        continue;
      }
      counts.failed++;
      console.log(`FAILED ${file}\n${result.output}`);
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, work));
  console.log(summaryLine(counts));
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1;
}

/** @param {string} file */
function tidyArguments(file) {
  const checks = /_test\.cc$/.test(file) ? [`--checks=${notInTests.map((name) => `-${name}`).join()}`] : [];
  return ['-p', join(root, 'build', 'release'), '--quiet', ...checks, file];
}

/** What CMake compiles of native/, by path relative to the root. @returns {Map<string, string>} */
function compileCommands() {
  /** @type {readonly {file: string, command: string}[]} */
  const all = JSON.parse(readFileSync(join(root, 'build', 'release', 'compile_commands.json'), 'utf8'));
  return new Map(
    all
      .map(({ file, command }) => /** @type {[string, string]} */ ([relative(root, file), command]))
      .filter(([file]) => /^native\/.*\.cc$/.test(file)),
  );
}

/**
 * A name for everything that the answer depends on: the file, the headers of the project below it, the rules.
 * @param {string} file
 * @param {string} rules
 */
function keyOf(file, rules) {
  const hash = createHash('sha256').update(rules);
  const seen = new Set([file]);
  for (const path of seen) {
    const text = readFileSync(join(root, path), 'utf8');
    hash.update(`\0${path}\0${text}`);
    for (const [, header = ''] of text.matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)) {
      if (existsSync(join(root, header))) seen.add(header);
    }
  }
  return hash.digest('hex');
}

const at = process.argv.indexOf('--tidy');
await runMain(() => (at < 0 ? checkFormat() : tidy(process.argv[at + 1] ?? '')));
