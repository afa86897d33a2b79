// Paths in a terminal: what is not plain text stands in quotes with escapes, as git prints it, so that no file's name can move the
// cursor or hide another line; and what was printed may be given back as an argument. Used by the commands.
import type { WirePath } from '../protocol/boughfs.js';
import { quote, unquote, wirePath } from '../protocol/wire-path.js';
import { usageError } from './usage-error.js';

/** Acts on the terminal or on how its text is laid out, or has a meaning in quotes. */
const unusual = /[\p{Cc}\p{Cf}\u2028\u2029"\\]/u;

export function pathText(path: WirePath): string {
  if (typeof path !== 'string') return quote(Buffer.from(path.b64, 'base64'));
  if (!unusual.test(path)) return path;
  // Plain text of any language stays readable; quote() would escape every byte of it.
  const inner = Array.from(path, (character) => {
    if (!unusual.test(character) && character.codePointAt(0) !== undefined && character > '\u007f') return character;
    const quoted = quote(Buffer.from(character, 'utf8'));
    return quoted.startsWith('"') ? quoted.slice(1, -1) : quoted;
  });
  return `"${inner.join('')}"`;
}

/** A path as a person gives it, in quotes with escapes where it is no plain text. `./a//b/` is `a/b`; it never leaves the folder. */
export function pathArgument(text: string): WirePath {
  const bytes = unquote(text).toString('latin1');
  const parts = bytes.split('/').filter((part) => part !== '' && part !== '.');
  if (bytes.startsWith('/') || parts.includes('..')) {
    throw usageError(`${text} does not lie in the folder.`, 'Give a path relative to the folder, without "..".');
  }
  return wirePath(Buffer.from(parts.join('/'), 'latin1'));
}

/** Text of somebody else on one line, without control characters. */
export function plainText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
