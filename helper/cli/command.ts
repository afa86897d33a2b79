// How each command is declared: the options all of them share, an example in its help, and what happens with its outcome.
// Used by the files of commands/.
import { Command, Option } from 'commander';

import { printError, printOutcome, type Outcome } from './outcome.js';
import { Session } from './session.js';

export interface CommonOptions {
  readonly json: boolean;
  readonly folder: string;
  readonly branch?: string;
}

/** A command with `--json` and `--folder`, and its examples at the end of `--help`. */
export function declare(usage: string, summary: string, examples: readonly string[]): Command {
  return new Command(usage)
    .description(summary)
    .option('--json', 'print one JSON object as the last line', false)
    .addOption(new Option('-C, --folder <folder>', 'work as if started there').default(process.cwd(), 'this folder'))
    .addHelpText(
      'after',
      `\nExample${examples.length > 1 ? 's' : ''}:\n${examples.map((line) => `  $ ${line}`).join('\n')}`,
    );
}

/** `[branch]` and `--branch`, which mean the same. */
export function takesBranch(command: Command): Command {
  return command
    .argument('[branch]', 'first letters of its id or name; may be left out when there is one branch only')
    .option('-b, --branch <branch>', 'the same as an option');
}

/** Runs the work with a session and prints what comes of it. */
export async function withSession(options: CommonOptions, work: (session: Session) => Promise<Outcome>): Promise<void> {
  await report(options, () => Session.run(options, work));
}

/** Runs work that needs no helper and prints what comes of it. */
export async function report(options: { readonly json: boolean }, work: () => Promise<Outcome>): Promise<void> {
  try {
    printOutcome(await work(), options.json);
  } catch (error) {
    printError(error, options.json);
  }
}

/** Gathers an option that may be given many times. */
export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
