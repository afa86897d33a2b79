// bough commit and bough undo: a branch's files become its parent's, at once or not at all; and back.
import type { Command } from 'commander';

import { counted } from '../columns.js';
import { collect, declare, takesBranch, withSession, type CommonOptions } from '../command.js';
import type { Outcome } from '../outcome.js';
import { pathArgument, pathText, plainText } from '../path-text.js';
import { branchText } from '../pick-branch.js';
import type { Branch, Requests } from '../../protocol/rpc.js';

interface CommitOptions extends CommonOptions {
  readonly path: readonly string[];
  readonly git?: string;
}

export function commitCommand(): Command {
  return takesBranch(
    declare('commit', "Make a branch's files its parent's: all of them or none.", [
      'bough commit fix',
      'bough commit fix --git "Pages start at the first entry"',
      'bough commit fix --path src/pages.js',
    ]),
  )
    .option('--path <path>', 'only this path; may be given many times', collect, [])
    .option('--git <message>', 'make a git commit of it, too')
    .action(async (wanted: string | undefined, options: CommitOptions) => {
      await withSession(options, async (session) => {
        const branch = await session.branch(options.branch ?? wanted);
        const result = await session.request('bough/commit', {
          branch: branch.id,
          ...(options.path.length > 0 ? { paths: options.path.map(pathArgument) } : {}),
          ...(options.git === undefined ? {} : { git: { message: options.git } }),
        });
        return commitOutcome(branch, result);
      });
    });
}

function commitOutcome(branch: Branch, result: Requests['bough/commit'][1]): Outcome {
  const into = result.into === 'base' ? 'the folder' : result.into;
  const lines = [
    `${branchText(branch)} committed into ${into}: ${counted(result.paths, 'path')}, ${result.tookUs / 1000} ms.`,
  ];
  if (result.partial) lines.push('  The branch goes on with what was not committed.');
  if (result.merged.length > 0) lines.push(`  merged by lines: ${result.merged.map(pathText).join(', ')}`);
  if (result.superseded.length > 0) lines.push(`  superseded: ${result.superseded.join(', ')}`);
  for (const { path, what, why } of result.notApplied) {
    lines.push(`  not applied: ${what} of ${pathText(path)}: ${plainText(why)}`);
  }
  if (result.gitCommit !== null) lines.push(`  git commit ${result.gitCommit}`);
  if (result.gitProblem !== null) lines.push(`  git did not commit it: ${plainText(result.gitProblem)}`);
  lines.push(`  undo it with: bough undo ${result.commit}`);
  // The files are committed; but who asked for a git commit did not get all that was asked for.
  return { ok: result.gitProblem === null, fields: { branch: branch.id, ...result }, text: lines.join('\n') };
}

export function undoCommand(): Command {
  return declare('undo', 'Take a commit back: every path exactly as it was.', ['bough undo', 'bough undo 12'])
    .argument('[commit]', 'the last one when left out')
    .action(async (commit: string | undefined, options: CommonOptions) => {
      await withSession(options, async (session) => {
        const { folder } = await session.workspace();
        const result = await session.request('bough/undo', { folder, ...(commit === undefined ? {} : { commit }) });
        const text = `Commit ${result.commit} undone: ${counted(result.paths, 'path')} as before.`;
        return { ok: true, fields: result, text };
      });
    });
}
