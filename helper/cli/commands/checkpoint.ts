// bough checkpoint and bough restore. With process isolation a checkpoint holds files, not running programs: it is a branch
// without an agent, and restoring is branching from it, so that it can be done any number of times.
import type { Command } from 'commander';

import { declare, takesBranch, withSession, type CommonOptions } from '../command.js';
import type { Outcome } from '../outcome.js';
import { branchText, pickBranch } from '../pick-branch.js';
import type { Branch } from '../../protocol/rpc.js';
import type { Session } from '../session.js';

interface CheckpointOptions extends CommonOptions {
  readonly name?: string;
}

export function checkpointCommand(): Command {
  return takesBranch(
    declare('checkpoint', 'Keep the files of a branch as they are at this instant (files only, not what runs).', [
      'bough checkpoint fix --name before-the-rewrite',
    ]),
  )
    .option('--name <name>', 'name of the checkpoint')
    .action(async (wanted: string | undefined, options: CheckpointOptions) => {
      await withSession(options, async (session) => {
        const branch = await session.branch(options.branch ?? wanted);
        const name = options.name ?? `${branch.name || 'branch'}-checkpoint`;
        const { made, pauseUs } = await child(session, branch, { agent: 'none', name });
        const text = `Checkpoint ${branchText(made)} of ${branchText(branch)}: files only.\n  go back to it with: bough restore ${made.id}`;
        return { ok: true, fields: { checkpoint: made, of: branch.id, filesOnly: true, pauseUs }, text };
      });
    });
}

interface RestoreOptions extends CommonOptions {
  readonly agent?: string;
  readonly hint?: string;
  readonly name?: string;
}

export function restoreCommand(): Command {
  return declare('restore', 'Make a new branch from a checkpoint and start an agent in it.', [
    'bough restore before-the-rewrite',
    'bough restore before-the-rewrite --agent claude --hint "try without a cache"',
  ])
    .argument('<checkpoint>', 'first letters of its id or name')
    .option('--agent <agent>', 'agent to start; the one of the branch the checkpoint was made of when left out')
    .option('--hint <words>', "the agent's task")
    .option('--name <name>', 'name of the new branch')
    .action(async (wanted: string, options: RestoreOptions) => {
      await withSession(options, async (session): Promise<Outcome> => {
        const { branches } = await session.workspace();
        const checkpoint = pickBranch(branches, wanted);
        const { made } = await child(session, checkpoint, {
          agent: options.agent ?? agentBefore(branches, checkpoint),
          ...(options.hint === undefined ? {} : { hint: options.hint }),
          ...(options.name === undefined ? {} : { name: options.name }),
        });
        const text = `Restored ${branchText(checkpoint)} as ${branchText(made)}, with ${made.agent}.\n  terminal  bough attach ${made.id}`;
        return { ok: true, fields: { branch: made, checkpoint: checkpoint.id }, text };
      });
    });
}

/** The agent of the nearest branch above that has one. */
function agentBefore(branches: readonly Branch[], from: Branch): string {
  let at: Branch | undefined = from;
  while (at) {
    const { agent, parent }: Branch = at;
    if (agent !== 'none' && agent !== '') return agent;
    at = branches.find(({ id }) => id === parent);
  }
  return 'shell';
}

async function child(
  session: Session,
  of: Branch,
  { agent, name, hint }: { readonly agent: string; readonly name?: string; readonly hint?: string },
): Promise<{ made: Branch; pauseUs: number }> {
  const { branches, pauseUs } = await session.request('bough/branch', {
    branch: of.id,
    count: 1,
    group: 'independent',
    agent,
    ...(hint === undefined ? {} : { hints: [hint] }),
  });
  const [made] = branches;
  if (!made) throw new Error('the helper made no branch');
  if (name === undefined) return { made, pauseUs };
  return { made: await session.request('bough/rename', { branch: made.id, name }), pauseUs };
}
