// Builds one CMake preset and runs its C++ unit tests.
//   node scripts/ctest.mjs release|asan|dev [name pattern]
// Last line: `N passed, N failed, N skipped`, counted in doctest cases.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildNative } from './build.mjs';
import { countsOfCtest, summaryLine } from './count.mjs';
import { run } from './processes.mjs';
import { runMain, SetupError, Steps } from './report.mjs';

await runMain(async () => {
  const [preset = 'release', pattern] = process.argv.slice(2);
  await new Steps(`C++ unit tests (${preset})`).run('Build', () => buildNative(preset));

  const folder = mkdtempSync(join(tmpdir(), 'bough-ctest-'));
  try {
    const logFile = join(folder, 'log');
    const select = pattern === undefined ? [] : ['-R', pattern];
    // One at a time: tests that mount or fork must not fight over two cores.
    const result = await run('ctest', ['--preset', preset, '-V', '-j1', '--timeout', '600', ...select], { logFile });
    const output = readFileSync(logFile, 'utf8');
    process.stdout.write(output);
    const counts = countsOfCtest(output);
    if (!counts) {
      throw new SetupError(
        'BOUGH_TEST_CTEST',
        'ctest did not come to its end',
        `exit status ${result.status}`,
        'read its output above',
      );
    }
    if (result.status !== 0 && counts.failed === 0) counts.failed = 1;
    console.log(summaryLine(counts));
    return counts.failed === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
