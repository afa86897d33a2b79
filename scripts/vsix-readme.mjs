// The README as the editor shows it on the extension's page. That page loads no files of the extension, so pictures are put
// into the text itself, and links into the repository become plain words. Used by scripts/vsix.mjs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from './report.mjs';

/** A picture that makes the page heavy is better left out of it. */
const MOST_PICTURE_BYTES = 400_000;

/**
 * @param {string} markdown
 * @param {string} folder where its relative paths begin
 * @returns {string}
 */
export function selfContained(markdown, folder) {
  return markdown
    .replace(/!\[([^\]]*)\]\(([^)\s]+\.png)\)/g, (whole, /** @type {string} */ words, /** @type {string} */ path) =>
      isElsewhere(path)
        ? whole
        : `![${words}](data:image/png;base64,${picture(join(folder, path)).toString('base64')})`,
    )
    .replace(/(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, /** @type {string} */ words, /** @type {string} */ path) =>
      isElsewhere(path) || path.startsWith('#') ? whole : words,
    );
}

/** @param {string} path */
function isElsewhere(path) {
  return /^(https?|data|mailto):/.test(path);
}

/** @param {string} file */
function picture(file) {
  let bytes;
  try {
    bytes = readFileSync(file);
  } catch {
    throw new SetupError(
      'BOUGH_VSIX_PICTURE',
      'The README cannot be packed',
      `its picture ${file} is missing`,
      'take it again (test/e2e, media/screenshots.md) or take it out of the README',
    );
  }
  if (bytes.length > MOST_PICTURE_BYTES) {
    throw new SetupError(
      'BOUGH_VSIX_PICTURE',
      'The README cannot be packed',
      `its picture ${file} has ${bytes.length} bytes, more than ${MOST_PICTURE_BYTES}`,
      'make it smaller',
    );
  }
  return bytes;
}
