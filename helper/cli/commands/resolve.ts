// bough resolve: settles a conflict of a branch with its parent, path by path, so that the next commit goes through.
import { readFileSync } from 'node:fs';
import { Option, type Command } from 'commander';

import { columns, counted } from '../columns.js';
import type { WirePath } from '../../protocol/boughfs.js';
import { declare, withSession, type CommonOptions } from '../command.js';
import { type Outcome } from '../outcome.js';
import { usageError } from '../usage-error.js';
import { pathArgument, pathText } from '../path-text.js';
import { branchText } from '../pick-branch.js';
import type { Session } from '../session.js';

interface ResolveOptions extends CommonOptions {
  readonly take?: 'ours' | 'theirs';
  readonly with?: string;
}

export function resolveCommand(): Command {
  return declare('resolve', 'List what a commit would meet, or settle one path of it.', [
    'bough resolve fix',
    'bough resolve fix src/pages.js --take ours',
    'bough resolve fix src/pages.js --with merged.js',
  ])
    .argument('<branch>', 'first letters of its id or name')
    .argument('[path]', 'relative to the folder; all conflicts are listed when left out')
    .addOption(new Option('--take <side>', "ours: the branch's; theirs: the parent's").choices(['ours', 'theirs']))
    .option('--with <file>', 'take the content of this file')
    .action(async (wanted: string, path: string | undefined, options: ResolveOptions) => {
      await withSession(options, async (session) => {
        const branch = await session.branch(wanted);
        if (path !== undefined) {
          await settle(session, branch.id, pathArgument(path), options);
        }
        return remaining(session, branch.id, branchText(branch));
      });
    });
}

async function settle(session: Session, branch: string, path: WirePath, options: ResolveOptions): Promise<void> {
  if ((options.take === undefined) === (options.with === undefined)) {
    throw usageError(
      'resolve takes a path with either --take or --with.',
      `bough resolve fix ${pathText(path)} --take ours`,
    );
  }
  if (options.take !== undefined) {
    await session.request('bough/resolve', { branch, path, take: options.take });
  } else if (options.with !== undefined) {
    const data = contentOf(options.with).toString('base64');
    await session.request('bough/resolve', { branch, path, take: 'content', data });
  }
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usageError(`${file} cannot be read: ${why}.`, 'Give a file that holds the merged content.');
  }
}

/** What a commit would still meet: nothing is success, whatever was asked for. */
async function remaining(session: Session, branch: string, name: string): Promise<Outcome> {
  const { conflicts } = await session.request('bough/conflicts', { branch });
  const rows = conflicts.map(({ path, reason }) => [pathText(path), reason]);
  const text =
    conflicts.length === 0
      ? `${name} has no conflicts: bough commit`
      : `${counted(conflicts.length, 'conflict')} of ${name}:\n${columns(rows, '  ')}`;
  return { ok: true, fields: { branch, conflicts }, text };
}
