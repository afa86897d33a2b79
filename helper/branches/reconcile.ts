// Brings what a crash left into order when a workspace is opened for the first time in this helper: agents that still run are
// taken up, half-made branches go, what is kept beside branches that are gone goes, mounts come back. Nothing with a change in it
// is ever removed. Used by service.ts.
import { readdirSync } from 'node:fs';
import type { BranchInfo } from '../protocol/boughfs.js';
import type { Survivor } from '../machines/machine.js';
import type { BranchRecord } from '../state/database.js';
import { unknownRecord } from './view.js';
import type { OpenWorkspace } from './workspace.js';

const LOST = 'Stopped, because the helper ended. The files are as the agent left them.';

/** @param survivors agents of this workspace that are alive, by boughfs' ids of their branches */
export async function reconcile(workspace: OpenWorkspace, survivors: ReadonlyMap<string, Survivor>): Promise<void> {
  const { database, log } = workspace.around;
  const records = database.branches(workspace.hash);
  for (const info of [...workspace.infos.values()]) {
    const record = records.get(info.id);
    const survivor = survivors.get(info.id);
    if (survivor === undefined && (await isHalfMade(workspace, info, record))) {
      log(`branch ${workspace.id(info.id)} was never finished: removed`);
      await workspace.link.request('branch.abort', { branch: info.id });
      await workspace.forget([info.id]);
      continue;
    }
    database.putBranches(workspace.hash, new Map([[info.id, settled(record)]]));
    takeUp(workspace, info.id, record, survivor);
    if (info.state === 'live' || info.mount !== undefined) await workspace.mount(info.id);
  }
  await workspace.forget([...records.keys()].filter((id) => !workspace.infos.has(id)));
  await workspace.forget(strayFolders(workspace));
}

/** Made, but the helper ended before its agent ran, and nobody changed anything in it. */
async function isHalfMade(
  workspace: OpenWorkspace,
  info: BranchInfo,
  record: BranchRecord | undefined,
): Promise<boolean> {
  if (record?.phase === 'ready' || info.state !== 'live' || info.children.length > 0) return false;
  const { total } = await workspace.link.request('branch.diff', { branch: info.id, limit: 1 });
  return total === 0;
}

function settled(record: BranchRecord | undefined): BranchRecord {
  const known = record ?? unknownRecord;
  const { checks } = known;
  return {
    ...known,
    phase: 'ready',
    // Whoever waited for it is gone, and so is the command.
    checks: checks?.state === 'running' ? { ...checks, state: 'cancelled', endedMs: Date.now() } : checks,
  };
}

function takeUp(
  workspace: OpenWorkspace,
  branch: string,
  record: BranchRecord | undefined,
  survivor: Survivor | undefined,
): void {
  const run = survivor === undefined ? null : workspace.around.machine.adopt(survivor.init);
  if (run !== null && survivor !== undefined) {
    workspace.session(branch).adopt(run);
    workspace.update(branch, { run: survivor.init, exitCode: null, note: null });
  } else if (record?.run !== null && record?.run !== undefined) {
    workspace.update(branch, { run: null, exitCode: null, note: LOST });
  }
}

/** Names of folders below branches/ and mounts/ that no branch has. */
export function strayFolders(workspace: OpenWorkspace): string[] {
  const names = [workspace.at.branches, workspace.at.mounts].flatMap((folder) => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  });
  return [...new Set(names)].filter((name) => !workspace.infos.has(name));
}
