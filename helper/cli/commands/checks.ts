// bough checks: runs the workspace's check command in one branch or in all that live.
import type { Command } from 'commander';

import type { Branch, CheckRun } from '../../protocol/rpc.js';
import { columns } from '../columns.js';
import { declare, withSession, type CommonOptions } from '../command.js';
import { type Outcome } from '../outcome.js';
import { usageError } from '../usage-error.js';
import { branchText, pickBranch } from '../pick-branch.js';
import type { Session } from '../session.js';

interface ChecksOptions extends CommonOptions {
  readonly command?: string;
  readonly all: boolean;
}

interface Checked {
  readonly branch: Branch;
  readonly run: CheckRun;
}

export function checksCommand(): Command {
  return declare('checks', 'Run the checks in branches; ends with 0 only if all pass.', [
    'bough checks fix',
    'bough checks --all --command "npm test"',
  ])
    .argument('[branches...]', 'first letters of ids or names; may be left out when there is one branch only')
    .option('-b, --branch <branch>', 'one branch, as an option')
    .option('--all', 'every live branch', false)
    .option('--command <command>', "instead of the folder's own, such as: npm test")
    .action(async (wanted: readonly string[], options: ChecksOptions) => {
      await withSession(options, async (session) => {
        const { branches } = await session.workspace();
        const checked: Checked[] = [];
        for (const branch of choose(branches, wanted, options)) {
          checked.push({ branch, run: await check(session, branch, options.command) });
        }
        return outcomeOf(checked);
      });
    });
}

function choose(branches: readonly Branch[], wanted: readonly string[], options: ChecksOptions): readonly Branch[] {
  const named = [...(options.branch === undefined ? [] : [options.branch]), ...wanted];
  if (!options.all)
    return named.length === 0 ? [pickBranch(branches, undefined)] : named.map((name) => pickBranch(branches, name));
  if (named.length > 0) throw usageError('--all and a branch exclude each other.', 'bough checks --all');
  return branches.filter(({ fileState }) => fileState === 'live');
}

function check(session: Session, { id }: Branch, command: string | undefined): Promise<CheckRun> {
  return session.request('bough/checks', { branch: id, ...(command === undefined ? {} : { command }) });
}

function outcomeOf(checked: readonly Checked[]): Outcome {
  const ok = checked.every(({ run }) => run.state === 'passed');
  const results = checked.map(({ branch, run }) => ({ branch: branch.id, name: branch.name, ...run }));
  const rows = checked.map(({ branch, run }) => [run.state, branchText(branch), run.command, durationText(run)]);
  const failed = checked.filter(({ run }) => run.state !== 'passed' && run.output !== '');
  const outputs = failed.map(({ branch, run }) => `\n--- ${branchText(branch)}\n${run.output.trimEnd()}`);
  return { ok, fields: { results }, text: [columns(rows), ...outputs].join('\n') };
}

function durationText({ startedMs, endedMs }: CheckRun): string {
  return endedMs === null ? '' : `${((endedMs - startedMs) / 1000).toFixed(1)} s`;
}
