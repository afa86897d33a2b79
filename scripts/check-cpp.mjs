// C++ format, and with --tidy clang-tidy over everything that the preset dev compiles.
//   node scripts/check-cpp.mjs [--tidy]
// Used by scripts/lint.mjs (format) and `npm run tidy`.
import { availableParallelism } from 'node:os';
import { buildNative } from './build.mjs';
import { findProgram } from './packages.mjs';
import { root, run } from './processes.mjs';
import { runMain, SetupError } from './report.mjs';
import { projectFiles } from './sources.mjs';

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

async function tidy() {
  requireProgram('clang-tidy-19');
  await buildNative('dev');
  const files = (await projectFiles(/^native\/.*\.cc$/)).filter((path) => !path.includes('/fuzz/'));
  let failed = 0;
  const work = async () => {
    for (let file = files.shift(); file !== undefined; file = files.shift()) {
      const result = await run('clang-tidy-19', ['-p', `${root}/build/dev`, '--quiet', file]);
      if (result.status === 0) continue;
      failed++;
      console.error(`${file}:\n${result.output}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  console.log(`clang-tidy: ${failed} files with findings`);
  return failed === 0 ? 0 : 1;
}

await runMain(() => (process.argv.includes('--tidy') ? tidy() : checkFormat()));
