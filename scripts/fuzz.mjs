// Builds the libFuzzer targets and runs each for a short while, from a fixed seed so that a run can be repeated.
//   node scripts/fuzz.mjs [--seconds 20] [--runs 200000] [--only name]
// A target is an executable named fuzz_<what> of the preset fuzz; its seeds are native/*/fuzz/corpus/<what>/.
// Last line: `N passed, N failed, N skipped`, one per target.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildNative, configureNative } from './build.mjs';
import { summaryLine } from './count.mjs';
import { lastLines, root, run } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';

await runMain(async () => {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '20' },
      runs: { type: 'string', default: '200000' },
      only: { type: 'string' },
    },
  });
  await new Steps('Fuzzing').run('Build', buildTargets);

  const targets = executables(join(root, 'build', 'fuzz')).filter(
    (path) => values.only === undefined || basename(path) === `fuzz_${values.only}`,
  );
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const folder = mkdtempSync(join(tmpdir(), 'bough-fuzz-'));
  try {
    for (const target of targets) {
      const what = basename(target).slice('fuzz_'.length);
      const corpus = join(folder, what); // libFuzzer adds to the corpus; the seeds in the checkout stay as they are
      mkdirSync(corpus);
      for (const seeds of seedFolders(what)) cpSync(seeds, corpus, { recursive: true });
      const args = [
        corpus,
        '-seed=1',
        `-runs=${values.runs}`,
        `-max_total_time=${values.seconds}`,
        '-timeout=60',
        '-rss_limit_mb=3000',
        `-artifact_prefix=${join(root, 'build', 'fuzz', `${what}-`)}`,
      ];
      const result = await run(target, args, { timeoutMs: 10 * 60_000 });
      const ok = result.status === 0;
      if (ok) counts.passed++;
      else counts.failed++;
      const executed = /Done (\d+) runs/.exec(result.output)?.[1] ?? '?';
      console.log(`${ok ? 'ok' : 'FAILED'} ${what}: ${executed} runs`);
      if (!ok) console.log(lastLines(result.output, 60));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(summaryLine(counts));
  return counts.failed === 0 ? 0 : 1;
});

/** Builds the fuzz targets and what they link, not the programs. */
async function buildTargets() {
  await configureNative('fuzz');
  const listed = await run('ninja', ['-C', join(root, 'build', 'fuzz'), '-t', 'targets', 'all']);
  const targets = new Set(listed.output.match(/^fuzz_\w+(?=:)/gm) ?? []);
  if (targets.size === 0) {
    throw new SetupError(
      'BOUGH_TEST_NO_FUZZ',
      'There is nothing to fuzz',
      'CMake has no target fuzz_*',
      'cmake --preset fuzz',
    );
  }
  await buildNative('fuzz', [...targets]);
}

/** @param {string} folder @returns {string[]} */
function executables(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /^fuzz_\w+$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o111) !== 0)
    .sort();
}

/** @param {string} what @returns {string[]} */
function seedFolders(what) {
  return readdirSync(join(root, 'native'))
    .map((part) => join(root, 'native', part, 'fuzz', 'corpus', what))
    .filter((path) => existsSync(path));
}
