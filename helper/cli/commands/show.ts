// bough show: a file, a folder or a link as a branch, its branch point or its parent has it.
import { Option, type Command } from 'commander';

import type { Side, WirePath } from '../../protocol/boughfs.js';
import { declare, withSession, type CommonOptions } from '../command.js';
import { type Outcome } from '../outcome.js';
import { usageError } from '../usage-error.js';
import { pathArgument, pathText } from '../path-text.js';
import type { Session } from '../session.js';

interface ShowOptions extends CommonOptions {
  readonly side: Side;
}

export function showCommand(): Command {
  return declare('show', 'Print a file (or list a folder) of a branch.', [
    'bough show fix src/pages.js',
    'bough show fix src/pages.js --side point',
  ])
    .argument('<branch>', 'first letters of its id or name; with --branch this is the path')
    .argument('[path]', 'relative to the folder')
    .option('-b, --branch <branch>', 'the branch as an option')
    .addOption(
      new Option(
        '--side <side>',
        'branch: as it is now; point: as it was when branched; parent: as the parent has it now',
      )
        .choices(['branch', 'point', 'parent'])
        .default('branch'),
    )
    .action(async (first: string, second: string | undefined, options: ShowOptions) => {
      await withSession(options, async (session) => {
        const path = options.branch === undefined ? second : first;
        if (path === undefined) throw usageError('show takes a branch and a path.', 'bough show fix src/pages.js');
        const { id } = await session.branch(options.branch ?? first);
        return show(session, id, options.side, pathArgument(path), options.json);
      });
    });
}

async function show(session: Session, branch: string, side: Side, path: WirePath, json: boolean): Promise<Outcome> {
  const stat = await session.request('bough/stat', { branch, side, path });
  const fields = { branch, side, path, stat };
  if (stat.type === 'directory') {
    const { entries } = await session.request('bough/readdir', { branch, side, path });
    const lines = entries.map(({ name, type }) => pathText(name) + (type === 'directory' ? '/' : ''));
    return { ok: true, fields: { ...fields, entries }, text: lines.sort().join('\n') };
  }
  if (stat.type === 'symlink') {
    return { ok: true, fields, text: `→ ${pathText(stat.target ?? '')}` };
  }
  if (stat.type !== 'file') return { ok: true, fields, text: stat.type };
  const { data } = await session.request('bough/read', { branch, side, path });
  // Bytes as they are: no line end of ours after them.
  if (!json) process.stdout.write(Buffer.from(data, 'base64'));
  return { ok: true, fields: { ...fields, data }, text: '' };
}
