// "Run Checks": the workspace's check (setting bough.checks, or its npm test) inside a branch; the result is a badge in the
// tree and its output one click away.
import * as vscode from 'vscode';
import type { Branch, CheckRun } from '../../helper/protocol/rpc.js';
import { isLive } from '../branches/state.js';
import { BoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { toUri } from '../diff/uri.js';
import { pickBranch } from './pick.js';
import { assertTrusted, registerCommand, withProgress } from './run.js';

/** `npm test` when package.json has a test script that somebody wrote. */
function npmTest(packageJson: string): string | undefined {
  const parsed: unknown = JSON.parse(packageJson);
  if (typeof parsed !== 'object' || parsed === null || !('scripts' in parsed)) return undefined;
  const { scripts } = parsed;
  if (typeof scripts !== 'object' || scripts === null || !('test' in scripts)) return undefined;
  const { test } = scripts;
  return typeof test === 'string' && !test.includes('no test specified') ? 'npm test' : undefined;
}

async function checkCommand(branch: Branch): Promise<string> {
  const set = vscode.workspace
    .getConfiguration('bough', vscode.Uri.file(branch.workspace))
    .get<string>('checks', '')
    .trim();
  if (set !== '') return set;
  try {
    const file = await vscode.workspace.fs.readFile(toUri({ side: 'branch', branch: branch.id, path: 'package.json' }));
    const detected = npmTest(new TextDecoder().decode(file));
    if (detected !== undefined) return detected;
  } catch {
    // No package.json, or one that is not JSON: then there is nothing to detect.
  }
  throw new BoughError(
    'E_NO_CHECKS',
    'Bough does not know how to check this folder.',
    'Set bough.checks to a command, for example "npm test".',
  );
}

function sayResult(context: BoughContext, branch: Branch, run: CheckRun): void {
  const show = 'Show Output';
  const message = `${branch.name}: ${run.command} ${run.state}${run.exitCode === null || run.exitCode === 0 ? '' : ` (exit status ${run.exitCode})`}.`;
  const told =
    run.state === 'failed'
      ? vscode.window.showWarningMessage(message, show)
      : vscode.window.showInformationMessage(message, show);
  void told.then((pick) => {
    if (pick !== show) return;
    context.log.info(`${branch.name}: ${run.command}\n${run.output}`);
    context.log.show(true);
  });
}

export function registerChecks(context: BoughContext): void {
  registerCommand('bough.runChecks', 'Run Checks', context, async (argument) => {
    assertTrusted();
    const branch = await pickBranch(context, argument, 'Run Checks', isLive);
    const command = await checkCommand(branch);
    const run = await withProgress(`${branch.name}: ${command}`, (watched) =>
      context.helper.request('bough/checks', { branch: branch.id, command }, watched),
    );
    await context.model.refresh();
    sayResult(context, branch, run);
    return run.state;
  });
}
