// The helper of a story's world, asked directly: to compare what the screen says with what is so, and to act as an agent
// inside a branch would. Used by the stories.
import { connect, type HelperClient } from '../../helper/api/client.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { until } from './wait.js';
import type { World } from './world.js';

export async function askHelper<T>(world: World, ask: (client: HelperClient) => Promise<T>): Promise<T> {
  const client = await connect({ env: world.env, start: false, client: 'e2e' });
  try {
    return await ask(client);
  } finally {
    client.close();
  }
}

export function branchesOf(world: World): Promise<readonly Branch[]> {
  return askHelper(world, async (client) => (await client.request('bough/list', { folder: world.sample })).branches);
}

export async function branchNamed(world: World, name: string): Promise<Branch> {
  return until(`a branch named ${name}`, async () => (await branchesOf(world)).find((branch) => branch.name === name));
}

/** Runs a command inside a branch, as its agent would. Throws when it fails. */
export async function runInside(world: World, branch: Branch, script: string): Promise<string> {
  const result = await askHelper(world, (client) =>
    client.request('bough/exec', { branch: branch.id, command: ['bash', '-c', script], timeoutMs: 120_000 }),
  );
  if (result.exitCode !== 0)
    throw new Error(`"${script}" ended with ${result.exitCode}: ${result.stderr}${result.stdout}`);
  return result.stdout;
}
