// A folder as data: type, mode, bytes, link target of everything in it. Two equal snapshots are the same folder byte by
// byte. Used by the stories to check what is on disk.
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

export type Snapshot = ReadonlyMap<string, string>;

/** `.git` is left out: the editor's own git extension refreshes its index when it likes. */
const LEFT_OUT = new Set(['.git']);

function describe(file: string): string {
  const stat = lstatSync(file);
  const mode = (stat.mode & 0o7777).toString(8);
  if (stat.isSymbolicLink()) return `link ${readlinkSync(file)}`;
  if (stat.isDirectory()) return `folder ${mode}`;
  if (stat.isFile()) return `file ${mode} ${readFileSync(file).toString('base64')}`;
  return `other ${mode}`;
}

export function snapshot(folder: string): Snapshot {
  const found = new Map<string, string>();
  const walk = (relative: string) => {
    for (const name of readdirSync(path.join(folder, relative)).sort()) {
      const at = path.join(relative, name);
      if (LEFT_OUT.has(at)) continue;
      found.set(at, describe(path.join(folder, at)));
      if (lstatSync(path.join(folder, at)).isDirectory()) walk(at);
    }
  };
  walk('');
  return found;
}

/** What differs, one line each; empty: the same. */
export function differences(wanted: Snapshot, found: Snapshot): readonly string[] {
  const short = (text: string | undefined) => (text === undefined ? 'nothing' : text.slice(0, 80));
  return [...new Set([...wanted.keys(), ...found.keys()])]
    .sort()
    .filter((name) => wanted.get(name) !== found.get(name))
    .map((name) => `${name}: wanted ${short(wanted.get(name))}, found ${short(found.get(name))}`);
}

export function assertSame(what: string, wanted: Snapshot, found: Snapshot): void {
  const lines = differences(wanted, found);
  if (lines.length > 0) throw new Error(`${what}:\n${lines.join('\n')}`);
}
