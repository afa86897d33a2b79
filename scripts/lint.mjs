// `npm run lint`: every check that reads the sources without running them. A check is one test; all of them run even when
// an early one fails. Last line: `N passed, N failed, N skipped`.
import { join } from 'node:path';
import { summaryLine } from './count.mjs';
import { findProgram } from './packages.mjs';
import { run } from './processes.mjs';
import { duration, runMain } from './report.mjs';

const bin = (/** @type {string} */ name) => join('node_modules', '.bin', name);

/** @type {readonly {name: string, command: readonly string[], skip?: () => string | undefined}[]} */
const checks = [
  { name: 'types (tsc -b)', command: [bin('tsc'), '-b'] },
  { name: 'ESLint', command: [bin('eslint'), '--max-warnings=0', '.'] },
  { name: 'Prettier', command: [bin('prettier'), '--check', '--log-level=warn', '.'] },
  {
    name: 'clang-format',
    command: ['node', 'scripts/check-cpp.mjs'],
    skip: () => (findProgram('clang-format-19') === undefined ? 'clang-format-19 is not installed' : undefined),
  },
  { name: 'arrows', command: ['node', 'scripts/check-arrows.mjs'] },
  { name: 'contributions', command: ['node', 'scripts/check-contributions.mjs'] },
  { name: 'lock file', command: ['node', 'scripts/check-lockfile.mjs'] },
];

await runMain(async () => {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const check of checks) {
    const reason = check.skip?.();
    if (reason !== undefined) {
      counts.skipped++;
      console.log(`skipped ${check.name}: ${reason}`);
      continue;
    }
    const started = performance.now();
    const [program = '', ...args] = check.command;
    const result = await run(program, args);
    const ok = result.status === 0;
    if (ok) counts.passed++;
    else counts.failed++;
    console.log(`${ok ? 'ok' : 'FAILED'} ${check.name} (${duration(performance.now() - started)})`);
    if (!ok) console.log(result.output.trimEnd());
  }
  console.log(summaryLine(counts));
  return counts.failed === 0 ? 0 : 1;
});
