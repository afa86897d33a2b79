// bough diff: what a branch changed since it was made, or against another branch.
import type { Command } from 'commander';

import type { Change, DiffResult } from '../../protocol/boughfs.js';
import { columns, counted } from '../columns.js';
import { declare, takesBranch, withSession, type CommonOptions } from '../command.js';
import { usageError } from '../usage-error.js';
import { pathText } from '../path-text.js';
import { pickBranch } from '../pick-branch.js';
import type { Session } from '../session.js';

interface DiffOptions extends CommonOptions {
  readonly against?: string;
  readonly patch: boolean;
}

export function diffCommand(): Command {
  return takesBranch(
    declare('diff', 'Show what a branch changed: every path with its kind, mode, type and size.', [
      'bough diff fix',
      'bough diff fix --patch',
      'bough diff fix-1 --against fix-2',
    ]),
  )
    .option('--against <branch>', 'compare with another branch instead of the branch point')
    .option('-p, --patch', 'as a unified diff', false)
    .action(async (wanted: string | undefined, options: DiffOptions) => {
      await withSession(options, async (session) => {
        if (options.patch && options.against !== undefined) {
          throw usageError('--patch shows what changed since the branch point only.', 'Leave out --against.');
        }
        const { branches } = await session.workspace();
        const { id } = pickBranch(branches, options.branch ?? wanted);
        const against = options.against === undefined ? undefined : pickBranch(branches, options.against).id;
        const { changes, total, drift } = await wholeDiff(session, id, against);
        const patch = options.patch ? (await session.request('bough/patch', { branch: id })).text : undefined;
        return {
          ok: true,
          fields: { branch: id, changes, total, drift, ...(patch === undefined ? {} : { patch }) },
          text: patch?.trimEnd() ?? diffText({ changes, total, drift }),
        };
      });
    });
}

/** Diffs come in pages. */
async function wholeDiff(session: Session, branch: string, against: string | undefined): Promise<DiffResult> {
  const changes: Change[] = [];
  for (;;) {
    const page = await session.request('bough/diff', {
      branch,
      ...(against === undefined ? {} : { against }),
      from: changes.length,
    });
    changes.push(...page.changes);
    if (changes.length >= page.total || page.changes.length === 0) return { ...page, changes };
  }
}

export function diffText({ changes, total, drift }: DiffResult): string {
  const sums = [counted(total, 'change')];
  if (drift.changed.length > 0) sums.push(`changed in the folder meanwhile: ${drift.changed.map(pathText).join(', ')}`);
  if (drift.others > 0) sums.push(`${counted(drift.others, 'other path')} of the folder moved`);
  return [...(changes.length === 0 ? [] : [columns(changes.map(changeRow))]), sums.join('; ')].join('\n');
}

const letters: Readonly<Record<Change['kind'], string>> = { added: 'A', modified: 'M', deleted: 'D', renamed: 'R' };

function changeRow(change: Change): string[] {
  const path = pathText(change.path) + (change.type === 'directory' ? '/' : '');
  const name = change.from === undefined ? path : `${pathText(change.from)} → ${path}`;
  return [letters[change.kind], name, detailsOf(change).join(', ')];
}

function detailsOf({ kind, type, what, size, mode, binary, lineEndingOnly, target, similarity }: Change): string[] {
  const octal = (bits: number) => (bits & 0o7777).toString(8);
  const has = (part: Change['what'][number]) =>
    kind === 'modified' || kind === 'renamed' ? what.includes(part) : false;
  const details: string[] = [];
  if (type !== 'file' && type !== 'directory') details.push(type);
  if (similarity !== undefined) details.push(`${similarity} % alike`);
  if (has('content') && lineEndingOnly) details.push('line endings only');
  else if (has('content')) details.push(`${size.before} → ${size.after} bytes`);
  if (kind === 'added' && type === 'file') details.push(`${size.after} bytes`);
  if (binary) details.push('binary');
  if (has('mode')) details.push(`mode ${octal(mode.before)} → ${octal(mode.after)}`);
  if (has('target') && target) details.push(`target ${pathText(target.before)} → ${pathText(target.after)}`);
  for (const part of ['owner', 'xattr', 'type'] as const) if (has(part)) details.push(part);
  return details;
}
