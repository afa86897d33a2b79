// Mounts as the kernel lists them (/proc/self/mountinfo, proc(5)). Never stat or statfs: a dead FUSE mount would block or fail.
// Used by the reconciliation and by gc, which look at mounts below our own state folder only.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { findProgram } from '../agents/find-program.js';

const run = promisify(execFile);

/** Mount points of FUSE file systems below a folder, deepest first. */
export function fuseMountsBelow(folder: string, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): string[] {
  return mountinfo
    .split('\n')
    .flatMap((line) => {
      const [before, after] = line.split(' - ');
      const point = before?.split(' ')[4];
      const type = after?.split(' ')[0] ?? '';
      return point !== undefined && (type === 'fuse' || type.startsWith('fuse.')) ? [unescape(point)] : [];
    })
    .filter((point) => point.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length);
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

/** Detaches a mount that nobody serves any more. */
export async function detachMount(point: string, environment: NodeJS.ProcessEnv): Promise<boolean> {
  const root = process.getuid?.() === 0;
  const command: readonly string[] = root
    ? ['umount', '--lazy', '--no-canonicalize', point]
    : [findProgram('fusermount3', environment) === undefined ? 'fusermount' : 'fusermount3', '-u', '-z', point];
  try {
    await run(command[0] ?? '', command.slice(1), { env: { PATH: environment['PATH'] ?? '/usr/bin:/bin' } });
    return true;
  } catch {
    return false;
  }
}
