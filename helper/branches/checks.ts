// Runs the workspace's checks (such as `npm test`) in a branch and keeps the result with the edits it belongs to. Used by
// service.ts.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BoughError, errorCode } from '../protocol/failure.js';
import type { CheckRun } from '../protocol/rpc.js';
import { commandRequest } from './making.js';
import type { OpenWorkspace } from './workspace.js';

const KEEP_BYTES = 64 * 1024;

export async function runChecks(
  workspace: OpenWorkspace,
  branch: string,
  command: string | undefined,
  signal: AbortSignal,
): Promise<CheckRun> {
  if (workspace.record(branch)?.checks?.state === 'running') {
    throw new BoughError('E_STATE', 'The checks of this branch are running already.', {
      fix: 'Wait for them, or cancel them.',
    });
  }
  const line = command ?? usualCommand(workspace);
  if (command !== undefined) remember(workspace, command);
  const begun: CheckRun = {
    command: line,
    state: 'running',
    exitCode: null,
    startedMs: Date.now(),
    endedMs: null,
    output: '',
    edits: (await workspace.link.request('branch.info', { branch })).edits,
  };
  const keep = (run: CheckRun): CheckRun => {
    workspace.update(branch, { checks: run });
    return run;
  };
  keep(begun);
  let output = Buffer.alloc(0);
  try {
    const { exitCode } = await workspace
      .session(branch)
      .command(commandRequest(workspace, branch, 'check', ['sh', '-c', line]), {
        signal,
        keepBytes: KEEP_BYTES,
        // Both streams in the order in which they came, as in a terminal.
        onOutput: (data) => (output = Buffer.concat([output, data]).subarray(-KEEP_BYTES)),
      });
    const state = exitCode === 0 ? 'passed' : 'failed';
    return keep({ ...begun, state, exitCode, endedMs: Date.now(), output: output.toString('utf8') });
  } catch (error) {
    const run = keep({ ...begun, state: 'cancelled', endedMs: Date.now(), output: output.toString('utf8') });
    if (errorCode(error) === 'E_CANCELLED' || errorCode(error) === 'E_STOPPED') return run;
    throw error;
  }
}

function usualCommand(workspace: OpenWorkspace): string {
  const kept = workspace.around.database.workspaces().get(workspace.hash)?.checks;
  if (typeof kept === 'string') return kept;
  const manifest = join(workspace.folder, 'package.json');
  if (existsSync(manifest) && /"test"\s*:/.test(readFileSync(manifest, 'utf8'))) return 'npm test';
  throw new BoughError('E_NO_CHECKS', `No checks are known for ${workspace.folder}.`, {
    fix: 'Say which command checks it, such as: npm test',
  });
}

function remember(workspace: OpenWorkspace, command: string): void {
  workspace.around.database.putWorkspace(workspace.hash, { folder: workspace.folder, checks: command });
}
