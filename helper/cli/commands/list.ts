// bough ls: the branches of this folder as a tree.
import type { Command } from 'commander';

import { columns, counted } from '../columns.js';
import { declare, withSession, type CommonOptions } from '../command.js';
import { plainText } from '../path-text.js';
import type { Branch, Workspace } from '../../protocol/rpc.js';

export function listCommand(): Command {
  return declare('ls', 'List the branches of this folder: state, changes, checks.', ['bough ls'])
    .alias('list')
    .action(async (options: CommonOptions) => {
      await withSession(options, async (session) => {
        const { folder, branches, commits, store } = await session.workspace();
        const text = listText({ folder, branches, commits });
        return { ok: true, fields: { folder, branches, commits, store }, text };
      });
    });
}

export function listText({ folder, branches, commits }: Pick<Workspace, 'folder' | 'branches' | 'commits'>): string {
  if (branches.length === 0) return `${plainText(folder)}: no branches. Start an agent with: bough start`;
  const rows = [
    ['BRANCH', 'ID', 'STATE', 'AGENT', 'CHANGES', 'CHECKS', 'HINT'],
    ...treeRows(branches, roots(branches), ''),
  ];
  const undoable = commits.filter((commit) => commit.undoable);
  const footer = undoable.length === 0 ? [] : ['', `${counted(undoable.length, 'commit')} can be undone: bough undo`];
  return [plainText(folder), columns(rows, '  '), ...footer].join('\n');
}

/** Branches whose parent is the base, or is gone. */
function roots(branches: readonly Branch[]): readonly Branch[] {
  const ids = new Set(branches.map(({ id }) => id));
  return branches.filter(({ parent }) => !ids.has(parent));
}

function treeRows(all: readonly Branch[], siblings: readonly Branch[], indent: string): string[][] {
  return siblings.flatMap((branch) => [
    [
      indent + (plainText(branch.name) || '-'),
      branch.id,
      stateText(branch),
      plainText(branch.agent),
      changesText(branch),
      checksText(branch),
      plainText(branch.hint),
    ],
    ...treeRows(
      all,
      all.filter(({ parent }) => parent === branch.id),
      `${indent}  `,
    ),
  ]);
}

function stateText({ person, exitCode, note }: Branch): string {
  const ended = exitCode === null || exitCode === 0 ? '' : ` (${exitCode})`;
  return person + ended + (note === null || note === '' ? '' : `: ${plainText(note)}`);
}

function changesText({ changes, overlaps }: Branch): string {
  if (changes === null) return '?';
  return `${changes}${overlaps > 0 ? `, ${overlaps} also in a sibling` : ''}`;
}

function checksText({ checks, edits }: Branch): string {
  if (!checks) return '-';
  return checks.edits === edits || checks.state === 'running' ? checks.state : `${checks.state}, then changed`;
}
