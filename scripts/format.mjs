// `npm run format`: Prettier over TypeScript, JSON and Markdown, clang-format over C++.
import { join } from 'node:path';
import { findProgram } from './packages.mjs';
import { run } from './processes.mjs';
import { runMain } from './report.mjs';
import { projectFiles } from './sources.mjs';

await runMain(async () => {
  const prettier = join('node_modules', '.bin', 'prettier');
  const formatted = await run(prettier, ['--write', '--log-level=warn', '.'], { show: true });
  if (formatted.status !== 0) return 1;
  if (findProgram('clang-format-19') === undefined) {
    console.log('C++ is not formatted: clang-format-19 is not installed');
    return 0;
  }
  const files = await projectFiles(/^native\/.*\.(cc|h)$/);
  if (files.length === 0) return 0;
  const result = await run('clang-format-19', ['-i', ...files], { show: true });
  return result.status ?? 1;
});
