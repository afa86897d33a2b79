// The command line `bough`: wires the commands and nothing more. Bundled as dist/bough.js.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Command, type CommanderError } from 'commander';

import { attachCommand } from './commands/attach.js';
import { abortCommand, mountCommand, rebaseCommand, renameCommand, stopCommand } from './commands/branch-life.js';
import { branchCommand } from './commands/branch.js';
import { checkpointCommand, restoreCommand } from './commands/checkpoint.js';
import { checksCommand } from './commands/checks.js';
import { commitCommand, undoCommand } from './commands/commit.js';
import { diffCommand } from './commands/diff.js';
import { execCommand } from './commands/exec.js';
import { listCommand } from './commands/list.js';
import { resolveCommand } from './commands/resolve.js';
import { showCommand } from './commands/show.js';
import { startCommand } from './commands/start.js';
import { agentsCommand, doctorCommand, gcCommand, shutdownCommand } from './commands/upkeep.js';

const commands = [
  startCommand(),
  branchCommand(),
  listCommand(),
  diffCommand(),
  showCommand(),
  execCommand(),
  attachCommand(),
  checksCommand(),
  commitCommand(),
  undoCommand(),
  resolveCommand(),
  rebaseCommand(),
  abortCommand(),
  checkpointCommand(),
  restoreCommand(),
  stopCommand(),
  renameCommand(),
  mountCommand(),
  agentsCommand(),
  gcCommand(),
  doctorCommand(),
  shutdownCommand(),
];

/** Of package.json beside dist/ or, from the sources, two folders up. */
function version(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  for (const folder of [join(here, '..'), join(here, '..', '..')]) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
        string,
        unknown
      >;
      if (name === 'bough' && typeof version === 'string') return version;
    } catch {
      // Not this one.
    }
  }
  return 'unknown';
}

// A reader that has seen enough, such as `bough diff | head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const program = new Command('bough')
  .description('Branch a live coding agent: its files fork, each branch goes on by itself, the winner is committed.')
  .version(version())
  .addHelpText('after', '\nExample:\n  $ bough start claude --hint "make the tests pass" && bough branch -n 3');
for (const command of commands) program.addCommand(command);
// Commander ends with 1 after wrong use, and this command line with 2: 1 says that the work itself failed.
for (const command of [program, ...commands]) {
  command.exitOverride((error: CommanderError) => {
    if (error.exitCode === 0) process.exit(0);
    // Commander has said it on stderr already; a program reads the last line of stdout.
    if (process.argv.includes('--json')) {
      const message = error.message.replace(/^error: /, '');
      process.stdout.write(`${JSON.stringify({ ok: false, error: { code: 'E_USAGE', message } })}\n`);
    }
    process.exit(2);
  });
}
await program.parseAsync();
