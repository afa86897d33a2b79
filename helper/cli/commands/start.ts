// bough start: an agent or a shell in a new branch of this folder.
import { declare, withSession, type CommonOptions } from '../command.js';
import { branchText } from '../pick-branch.js';
import { attachTo } from '../attach.js';
import type { Command } from 'commander';

interface StartOptions extends CommonOptions {
  readonly hint?: string;
  readonly name?: string;
  readonly network: boolean;
  readonly attach: boolean;
}

export function startCommand(): Command {
  return declare('start', 'Start an agent or a shell in a new branch of this folder.', [
    'bough start claude --network --hint "make the tests pass"',
    'bough start --name try --attach',
    'bough start mine -- my-agent --task "{hint}"',
  ])
    .argument(
      '[agent]',
      'shell, repair, claude, codex, gemini, opencode, aider, or a name for your own command',
      'shell',
    )
    .argument('[command...]', 'command of an agent of your own, after --')
    .option('--hint <words>', "the agent's task")
    .option('--name <name>', 'name of the branch')
    .option('--network', 'with the network of this machine; an agent that asks a model needs it', false)
    .option('--attach', 'go into its terminal at once', false)
    .action(async (agent: string, command: readonly string[], options: StartOptions) => {
      await withSession(options, async (session) => {
        const { folder } = await session.workspace();
        const branch = await session.request('bough/start', {
          folder,
          agent,
          ...(command.length > 0 ? { command } : {}),
          ...(options.hint === undefined ? {} : { hint: options.hint }),
          ...(options.name === undefined ? {} : { name: options.name }),
          network: options.network,
          rows: process.stdout.rows || 24,
          columns: process.stdout.columns || 80,
        });
        if (options.attach) return attachTo(session, branch, false);
        const lines = [
          `Started ${agent} in the branch ${branchText(branch)}.`,
          ...(branch.folder === undefined ? [] : [`  files     ${branch.folder}`]),
          `  terminal  bough attach ${branch.id}`,
        ];
        return { ok: true, fields: { branch }, text: lines.join('\n') };
      });
    });
}
