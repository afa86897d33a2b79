// The runner must never call a suite green that was not: what it reads from a suite's output.
import { expect, it } from 'vitest';
import { countsOfCtest, countsOfLastLine, countsOfVitest, sum, summaryLine } from './count.mjs';

it('reads the fixed last line and nothing else', () => {
  expect(countsOfLastLine('ok a\n3 passed, 1 failed, 2 skipped\n')).toEqual({ passed: 3, failed: 1, skipped: 2 });
  expect(countsOfLastLine('3 passed, 0 failed, 0 skipped\nSegmentation fault\n')).toBeUndefined();
  expect(countsOfLastLine('')).toBeUndefined();
  expect(countsOfLastLine('all 3 passed, 0 failed, 0 skipped')).toBeUndefined();
});

it('writes the line that it reads', () => {
  const counts = { passed: 3, failed: 0, skipped: 7 };
  expect(countsOfLastLine(summaryLine(counts))).toEqual(counts);
});

it('adds suites up', () => {
  expect(
    sum([
      { passed: 1, failed: 2, skipped: 3 },
      { passed: 10, failed: 0, skipped: 0 },
    ]),
  ).toEqual({ passed: 11, failed: 2, skipped: 3 });
});

it('counts a vitest file that does not load as a failure', () => {
  const report = {
    numPassedTests: 4,
    numFailedTests: 1,
    numPendingTests: 2,
    numTodoTests: 1,
    testResults: [
      { status: 'failed', assertionResults: [] },
      { status: 'failed', assertionResults: [{}] },
      { status: 'passed', assertionResults: [{}] },
    ],
  };
  expect(countsOfVitest(JSON.stringify(report))).toEqual({ passed: 4, failed: 2, skipped: 3 });
  expect(countsOfVitest('{"numPassedTests": 4')).toBeUndefined();
});

const doctest = (test: number, passed: number, failed: number, skipped: number): string =>
  `${test}: [doctest] test cases:  ${passed + failed} | ${passed} passed | ${failed} failed | ${skipped} skipped`;

it('counts doctest cases under ctest', () => {
  const output = [
    doctest(1, 12, 0, 1),
    '1/2 Test #1: common_test .............   Passed    0.02 sec',
    doctest(2, 5, 2, 0),
    '2/2 Test #2: engine_test .............***Failed    0.20 sec',
    '50% tests passed, 1 tests failed out of 2',
  ].join('\n');
  expect(countsOfCtest(output)).toEqual({ passed: 17, failed: 2, skipped: 1 });
});

it('does not believe green cases of a test that ended badly', () => {
  const output = [
    doctest(1, 12, 0, 0),
    '1: ==1==ERROR: LeakSanitizer: detected memory leaks',
    '1/3 Test #1: common_test .............***Failed    0.02 sec',
    '2/3 Test #2: crashing_test ...........***Exception: SegFault  0.20 sec',
    '3/3 Test  #3: plain_program ..........   Passed    0.20 sec',
    '33% tests passed, 2 tests failed out of 3',
  ].join('\n');
  expect(countsOfCtest(output)).toEqual({ passed: 13, failed: 2, skipped: 0 });
  expect(countsOfCtest('1/3 Test #1: common_test ....   Passed    0.02 sec')).toBeUndefined();
});
