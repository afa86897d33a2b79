// The files of the project, as git sees them: what the checks look at. Used by the checks and by scripts/format.mjs.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './processes.mjs';
import { SetupError } from './report.mjs';

/**
 * Files that are tracked or new and not ignored, relative to the root.
 * @param {RegExp} pattern
 * @returns {Promise<string[]>}
 */
export async function projectFiles(pattern) {
  const listed = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard']);
  if (listed.status !== 0) {
    throw new SetupError(
      'BOUGH_CHECK_NOT_A_CHECKOUT',
      'The files of the project could not be listed',
      listed.output.trim(),
      'run this in a git checkout of Bough',
    );
  }
  const files = new Set(listed.output.split('\0').filter((path) => pattern.test(path)));
  return [...files].filter((path) => existsSync(join(root, path))).sort();
}
