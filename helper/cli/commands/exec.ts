// bough exec: runs a command in a branch, isolated as its agent is.
import type { Command } from 'commander';

import { declare, withSession, type CommonOptions } from '../command.js';
import { usageError } from '../usage-error.js';

interface ExecOptions extends CommonOptions {
  readonly timeout?: string;
}

export function execCommand(): Command {
  return declare('exec', 'Run a command in a branch and end with its exit status.', [
    'bough exec fix -- npm test',
    'bough exec --branch fix -- git status --short',
  ])
    .argument('<arguments...>', 'the branch and, after --, the command; with --branch the command alone')
    .option('-b, --branch <branch>', 'the branch as an option')
    .option('--timeout <seconds>', 'end it after so long')
    .action(async (given: readonly string[], options: ExecOptions) => {
      await withSession(options, async (session) => {
        const [wanted, command] = options.branch === undefined ? [given[0], given.slice(1)] : [options.branch, given];
        if (command.length === 0) throw usageError('exec takes a branch and a command.', 'bough exec fix -- npm test');
        const { id } = await session.branch(wanted);
        const { exitCode, stdout, stderr } = await session.request('bough/exec', {
          branch: id,
          command,
          ...(options.timeout === undefined ? {} : { timeoutMs: secondsOf(options.timeout) * 1000 }),
        });
        if (!options.json) {
          process.stdout.write(stdout);
          process.stderr.write(stderr);
        }
        return { ok: exitCode === 0, fields: { branch: id, exitCode, stdout, stderr }, text: '', status: exitCode };
      });
    });
}

function secondsOf(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0) || seconds > 86_400) {
    throw usageError('--timeout takes seconds, at most 86400.', 'bough exec fix --timeout 60 -- npm test');
  }
  return seconds;
}
