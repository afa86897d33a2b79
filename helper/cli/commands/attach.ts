// bough attach: the live terminal of a branch.
import type { Command } from 'commander';

import { attachTo } from '../attach.js';
import { declare, takesBranch, withSession, type CommonOptions } from '../command.js';

interface AttachOptions extends CommonOptions {
  readonly shell: boolean;
}

export function attachCommand(): Command {
  return takesBranch(
    declare('attach', "Go into a branch's terminal. Ctrl-] leaves; what runs there runs on.", [
      'bough attach fix',
      'bough attach fix --shell',
    ]),
  )
    .option('--shell', 'start a shell there when the agent has ended', false)
    .action(async (wanted: string | undefined, options: AttachOptions) => {
      await withSession(options, async (session) =>
        attachTo(session, await session.branch(options.branch ?? wanted), options.shell),
      );
    });
}
