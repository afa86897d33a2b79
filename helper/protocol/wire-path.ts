// Paths as boughfs tells them: text, or base64 where the bytes are no UTF-8. Used wherever paths are compared, printed or given to
// git.
import type { WirePath } from './boughfs.js';

/** The bytes of a path. */
export function pathBytes(path: WirePath): Buffer {
  return typeof path === 'string' ? Buffer.from(path, 'utf8') : Buffer.from(path.b64, 'base64');
}

/** Equal exactly for equal bytes; to be used as a key. */
export function pathKey(path: WirePath): string {
  return pathBytes(path).toString('latin1');
}

/** The reverse of pathBytes. */
export function wirePath(bytes: Buffer): WirePath {
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : { b64: bytes.toString('base64') };
}

const escapes = new Map<number, string>([
  [0x07, '\\a'],
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0b, '\\v'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
  [0x22, '\\"'],
  [0x5c, '\\\\'],
]);

/** A path in one line as git prints it (core.quotePath): in quotes with C escapes where it holds anything unusual. */
export function quotedPath(path: WirePath): string {
  return quote(pathBytes(path));
}

export function quote(bytes: Buffer): string {
  let result = '';
  let plain = true;
  for (const byte of bytes) {
    const escape = escapes.get(byte);
    if (escape === undefined && byte >= 0x20 && byte < 0x7f) {
      result += String.fromCharCode(byte);
      continue;
    }
    plain = false;
    result += escape ?? `\\${byte.toString(8).padStart(3, '0')}`;
  }
  return plain ? result : `"${result}"`;
}

/** The reverse of quote, and of plain text in quotes; text without quotes is what it is. */
export function unquote(text: string): Buffer {
  if (!text.startsWith('"') || !text.endsWith('"') || text.length < 2) return Buffer.from(text, 'utf8');
  const names = new Map([...escapes].map(([byte, escape]) => [escape.charAt(1), byte]));
  const parts = text.slice(1, -1).match(/\\[0-7]{3}|\\[^]|[^\\]+/gu) ?? [];
  return Buffer.concat(
    parts.map((part) => {
      if (!part.startsWith('\\')) return Buffer.from(part, 'utf8');
      const octal = /^\\[0-7]{3}$/.test(part) ? parseInt(part.slice(1), 8) : undefined;
      const byte = octal ?? names.get(part.slice(1));
      return byte === undefined ? Buffer.from(part.slice(1), 'utf8') : Buffer.from([byte & 0xff]);
    }),
  );
}
