// Paths in a terminal: what is not plain text is written as an escape, so that no file's name can move the cursor or hide
// another line. Used by the commands' tables.
import type { WirePath } from '../protocol/boughfs.js';

export function pathText(path: WirePath): string {
  if (typeof path === 'string') return plainText(path);
  return [...Buffer.from(path.b64, 'base64')].map((byte) => byteText(byte)).join('');
}

function byteText(byte: number): string {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`;
}

/** Text of somebody else on one line, without control characters. */
export function plainText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
