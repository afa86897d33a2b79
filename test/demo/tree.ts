// A whole tree in comparable form, and what differs between two. Used by the demo and by test/cli.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Path → type, mode, owner and content; `.git` is left out, since git itself writes there. */
export function snapshotOf(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (below: string) => {
    for (const name of readdirSync(join(folder, below))) {
      const path = below === '' ? name : `${below}/${name}`;
      if (path === '.git') continue;
      const full = join(folder, path);
      const stat = lstatSync(full);
      const content = stat.isSymbolicLink()
        ? readlinkSync(full)
        : stat.isFile()
          ? createHash('sha256').update(readFileSync(full)).digest('hex')
          : '';
      found.set(path, [stat.mode.toString(8), stat.uid, stat.gid, content].join(' '));
      if (stat.isDirectory()) walk(path);
    }
  };
  walk('');
  return found;
}

/** Paths that are in one only or not the same in both, in order. */
export function differences(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] {
  const paths = new Set([...a.keys(), ...b.keys()]);
  return [...paths].filter((path) => a.get(path) !== b.get(path)).sort();
}
