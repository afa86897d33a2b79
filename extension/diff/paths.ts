// Paths as they travel (WirePath) and as people and VS Code see them. Used by every feature that shows or names a file.
import path from 'node:path';
import type { WirePath } from '../../helper/protocol/boughfs.js';

/** One string per path, equal exactly when the paths are. */
export function pathKey(wire: WirePath): string {
  return typeof wire === 'string' ? wire : `\0${wire.b64}`;
}

/** For people: bytes that are not UTF-8 are shown as `\xNN`, so that two names never look the same; likewise what would break or turn the line. */
export function pathLabel(wire: WirePath): string {
  if (typeof wire === 'string') {
    return wire.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
      const code = character.codePointAt(0) ?? 0;
      return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
    });
  }
  const bytes = Buffer.from(wire.b64, 'base64');
  let label = '';
  for (const character of bytes.toString('latin1')) {
    const code = character.charCodeAt(0);
    label += code >= 0x20 && code < 0x7f ? character : `\\x${code.toString(16).padStart(2, '0')}`;
  }
  return label;
}

export function baseName(wire: WirePath): string {
  return path.posix.basename(pathLabel(wire));
}

/** The folder part for people; empty at the top. */
export function folderName(wire: WirePath): string {
  const folder = path.posix.dirname(pathLabel(wire));
  return folder === '.' ? '' : folder;
}

/** `file` relative to `folder` with `/` between names; undefined when it is not inside. */
export function relativeInside(folder: string, file: string): string | undefined {
  const relative = path.relative(folder, file);
  if (relative === '' || relative === '..' || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative)) {
    return undefined;
  }
  return relative.split(path.sep).join('/');
}
