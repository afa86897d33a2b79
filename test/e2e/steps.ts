// Steps that several stories share: start a shell session, wait for what a row says. Used by the stories.
import type { Branch } from '../../helper/protocol/rpc.js';
import type { Stage } from './harness.js';
import { branchesOf } from './helper-of.js';
import { until } from './wait.js';

/** Starts a shell by the palette. @returns its branch; its row in the tree begins with `sessionRow(branch)`. */
export async function startShell({ world, bench }: Stage): Promise<Branch> {
  await bench.openBoughView();
  const known = new Set((await branchesOf(world).catch(() => [])).map(({ id }) => id));
  await bench.command('Bough: Start Agent');
  await bench.pick('Start Agent', 'Shell');
  const session = await until('the session', async () => (await branchesOf(world)).find(({ id }) => !known.has(id)));
  await bench.rowLike(new RegExp(`^Session ${session.name}, running`));
  return session;
}

export function sessionRow(session: Branch): string {
  return `Session ${session.name},`;
}

/** True once a row that begins like this says something that matches. */
export async function rowSays({ bench }: Stage, row: string, words: RegExp): Promise<boolean> {
  return (await bench.rows()).some((label) => label.startsWith(row) && words.test(label));
}
