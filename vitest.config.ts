// Unit tests: `x.test.ts` beside `x.ts`. Suites that need whole processes and mounts have a main.ts of their own in test/.
import { defineConfig } from 'vitest/config';

// Where `npm test` reads the result; absent in a run by hand.
const report = process.env['BOUGH_VITEST_REPORT'];

export default defineConfig({
  test: {
    include: ['helper/**/*.test.ts', 'extension/**/*.test.ts', 'scripts/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...(report === undefined ? {} : { outputFile: { json: report } }),
  },
});
