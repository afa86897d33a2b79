// Short ways to run programs in a guest, used by the parts of this suite.
import { equal } from 'node:assert/strict';
import type { Guest } from '../../helper/machines/guest/guest.js';
import type { Exit } from '../../helper/machines/guest/messages.js';

export const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
export const where = { env: environment, cwd: '/' } as const;

/** A shell line that must succeed; what it printed. */
export async function shell(guest: Guest, line: string): Promise<string> {
  const { exit, stdout, stderr } = await guest.run({ ...where, argv: ['sh', '-c', line] });
  equal(describeExit(exit), 'code 0', `${line}: ${stderr.toString()}`);
  return stdout.toString();
}

export function describeExit(exit: Exit): string {
  return 'code' in exit ? `code ${exit.code}` : exit.signal;
}

/** Processes of the guest that have ended and that nobody has collected. */
export async function zombies(guest: Guest): Promise<string> {
  return await shell(guest, "ps -eo stat=,comm= | grep '^Z' || true");
}
