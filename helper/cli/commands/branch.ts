// bough branch: fork a branch with its agent, any number of times at once.
import type { Command } from 'commander';

import { collect, declare, takesBranch, withSession, type CommonOptions } from '../command.js';
import { counted } from '../columns.js';
import { usageError } from '../usage-error.js';
import { plainText } from '../path-text.js';
import { branchText } from '../pick-branch.js';

interface BranchOptions extends CommonOptions {
  readonly count?: string;
  readonly hint: readonly string[];
  readonly independent: boolean;
  readonly agent?: string;
}

export function branchCommand(): Command {
  return takesBranch(
    declare('branch', 'Fork a branch: its files as they are at this instant, its agent with a hint for each child.', [
      'bough branch fix -n 3',
      'bough branch fix --hint "smallest change" --hint "rewrite the parser"',
    ]),
  )
    .option('-n, --count <number>', 'how many; as many as there are hints when left out, at least 1')
    .option('--hint <words>', 'task of a child; may be given many times', collect, [])
    .option('--independent', 'each child may be committed; else the first commit wins', false)
    .option('--agent <agent>', "another agent than the branch's own")
    .action(async (wanted: string | undefined, options: BranchOptions) => {
      await withSession(options, async (session) => {
        const count = countOf(options);
        const { id, name } = await session.branch(options.branch ?? wanted);
        const { branches, pauseUs } = await session.request('bough/branch', {
          branch: id,
          count,
          hints: options.hint,
          group: options.independent ? 'independent' : 'exclusive',
          ...(options.agent === undefined ? {} : { agent: options.agent }),
        });
        const lines = [
          `${counted(branches.length, 'branch', 'branches')} of ${plainText(name)} made; it paused for ${pauseUs / 1000} ms.`,
          ...branches.map(
            (branch) => `  ${branchText(branch)}${branch.hint === '' ? '' : `: ${plainText(branch.hint)}`}`,
          ),
        ];
        return { ok: true, fields: { branches, pauseUs }, text: lines.join('\n') };
      });
    });
}

function countOf({ count, hint }: BranchOptions): number {
  if (count === undefined) return Math.max(1, hint.length);
  if (!/^[1-9]\d{0,2}$/.test(count)) {
    throw usageError(`--count takes a number from 1 to 999, not "${plainText(count)}".`, 'bough branch -n 3');
  }
  return Number(count);
}
