// bough rebase, abort, stop, rename and mount: what can happen to one branch.
import type { Command } from 'commander';

import { counted } from '../columns.js';
import { declare, takesBranch, withSession, type CommonOptions } from '../command.js';
import { pathText, plainText } from '../path-text.js';
import { branchText } from '../pick-branch.js';

export function rebaseCommand(): Command {
  return takesBranch(
    declare('rebase', 'Bring a branch up to its parent as it is now; a superseded branch lives again.', [
      'bough rebase fix',
    ]),
  ).action(async (wanted: string | undefined, options: CommonOptions) => {
    await withSession(options, async (session) => {
      const branch = await session.branch(options.branch ?? wanted);
      const result = await session.request('bough/rebase', { branch: branch.id });
      const merged = result.merged.length === 0 ? '' : `; merged by lines: ${result.merged.map(pathText).join(', ')}`;
      const text = `${branchText(branch)} rebased: ${counted(result.paths, 'path')}${merged}.`;
      return { ok: true, fields: { branch: branch.id, ...result }, text };
    });
  });
}

interface AbortOptions extends CommonOptions {
  readonly recursive: boolean;
}

export function abortCommand(): Command {
  return takesBranch(
    declare('abort', 'Drop a branch: its agent ends, nothing of it stays.', ['bough abort fix --recursive']),
  )
    .option('-r, --recursive', 'with all branches of it', false)
    .action(async (wanted: string | undefined, options: AbortOptions) => {
      await withSession(options, async (session) => {
        const branch = await session.branch(options.branch ?? wanted);
        const { branches } = await session.request('bough/abort', { branch: branch.id, recursive: options.recursive });
        const text = `${branchText(branch)} is gone${branches.length > 1 ? ` with ${branches.length - 1} below it` : ''}.`;
        return { ok: true, fields: { branches }, text };
      });
    });
}

export function stopCommand(): Command {
  return takesBranch(declare('stop', "End a branch's agent; its files stay.", ['bough stop fix'])).action(
    async (wanted: string | undefined, options: CommonOptions) => {
      await withSession(options, async (session) => {
        const { id } = await session.branch(options.branch ?? wanted);
        const branch = await session.request('bough/stop', { branch: id });
        return { ok: true, fields: { branch }, text: `${branchText(branch)} is ${branch.person}.` };
      });
    },
  );
}

export function renameCommand(): Command {
  return declare('rename', 'Give a branch another name.', ['bough rename fix better-fix'])
    .argument('<branch>', 'first letters of its id or name')
    .argument('<name>', 'the new name')
    .action(async (wanted: string, name: string, options: CommonOptions) => {
      await withSession(options, async (session) => {
        const { id } = await session.branch(wanted);
        const branch = await session.request('bough/rename', { branch: id, name });
        return { ok: true, fields: { branch }, text: `${branch.id} is now ${plainText(branch.name)}.` };
      });
    });
}

export function mountCommand(): Command {
  return takesBranch(
    declare('mount', "Print the folder where a branch's files are, mounting it if it is not.", [
      'cd "$(bough mount fix)"',
    ]),
  ).action(async (wanted: string | undefined, options: CommonOptions) => {
    await withSession(options, async (session) => {
      const { id } = await session.branch(options.branch ?? wanted);
      const { folder } = await session.request('bough/mount', { branch: id });
      return { ok: true, fields: { branch: id, folder }, text: folder };
    });
  });
}
