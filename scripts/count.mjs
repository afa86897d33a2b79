// What a suite's output says about how many of its tests passed. Used by the test runner and by scripts/ctest.mjs.

/** @typedef {{passed: number, failed: number, skipped: number}} Counts */

/** @param {Counts} counts @returns {string} the fixed form of a summary line */
export function summaryLine(counts) {
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
}

/** @param {readonly Counts[]} all @returns {Counts} */
export function sum(all) {
  return {
    passed: all.reduce((n, c) => n + c.passed, 0),
    failed: all.reduce((n, c) => n + c.failed, 0),
    skipped: all.reduce((n, c) => n + c.skipped, 0),
  };
}

/**
 * Reads the last line `N passed, N failed, N skipped`. Undefined where the last line says something else: the suite did
 * not come to its end.
 * @param {string} output
 * @returns {Counts | undefined}
 */
export function countsOfLastLine(output) {
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  const match = /^(\d+) passed, (\d+) failed, (\d+) skipped$/.exec(line.trim());
  if (!match) return undefined;
  return { passed: Number(match[1]), failed: Number(match[2]), skipped: Number(match[3]) };
}

/**
 * Reads vitest's JSON report. A file that failed to load has no tests but counts as one failure.
 * @param {string} json
 * @returns {Counts | undefined}
 */
export function countsOfVitest(json) {
  try {
    const report = JSON.parse(json);
    const brokenFiles = report.testResults.filter(
      (/** @type {{status: string, assertionResults: unknown[]}} */ file) =>
        file.status === 'failed' && file.assertionResults.length === 0,
    ).length;
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + brokenFiles,
      skipped: report.numPendingTests + report.numTodoTests,
    };
  } catch {
    return undefined;
  }
}

/**
 * Reads the output of `ctest -V`: each ctest test counts its doctest cases; one without doctest, or one that ended badly
 * in spite of green cases (a leak found at exit, a crash, a time-out), counts as one.
 * @param {string} output
 * @returns {Counts | undefined} undefined when ctest did not come to its end
 */
export function countsOfCtest(output) {
  if (!/^\d+% tests passed/m.test(output) && !/No tests were found/.test(output)) return undefined;
  /** @type {Counts[]} */
  const all = [];
  for (const result of output.matchAll(/^\s*\d+\/\d+ Test\s+#(\d+): \S+ [ .]*(.*)$/gm)) {
    const [, number = '', word = ''] = result;
    const cases = new RegExp(
      String.raw`^${number}: \[doctest\] test cases:\s+\d+ \|\s+(\d+) passed \|\s+(\d+) failed \|\s+(\d+) skipped`,
      'm',
    ).exec(output);
    const counts = {
      passed: Number(cases?.[1] ?? 0),
      failed: Number(cases?.[2] ?? 0),
      skipped: Number(cases?.[3] ?? 0),
    };
    if (/Skipped|Not Run \(Disabled\)/.test(word)) counts.skipped += cases ? 0 : 1;
    else if (!/^Passed/.test(word)) counts.failed = Math.max(1, counts.failed);
    else if (!cases) counts.passed = 1;
    all.push(counts);
  }
  return sum(all);
}
