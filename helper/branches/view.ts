// Branches and workspaces as faces see them: boughfs' facts, the records and what runs now in one shape. Used by service.ts.
import type { BranchInfo } from '../protocol/boughfs.js';
import type { Branch, PersonState, Workspace } from '../protocol/rpc.js';
import { findAgent } from '../agents/presets.js';
import type { BranchRecord } from '../state/database.js';
import type { DeltaSummary } from './deltas.js';
import type { OpenWorkspace } from './workspace.js';

/** Of a branch whose record was lost. */
export const unknownRecord: BranchRecord = {
  phase: 'ready',
  hint: '',
  agent: 'shell',
  command: null,
  machine: 'process',
  network: false,
  run: null,
  exitCode: null,
  note: null,
  checks: null,
};

export async function branchesOf(workspace: OpenWorkspace): Promise<Branch[]> {
  await workspace.read();
  const infos = [...workspace.infos.values()].sort((a, b) => a.createdMs - b.createdMs || byNumber(a.name, b.name));
  const summaries = await workspace.deltas.summaries(infos);
  return infos
    .filter((info) => workspace.infos.has(info.id))
    .map((info) => toBranch(workspace, info, summaries.get(info.id) ?? { changes: null, overlaps: 0 }));
}

export async function branchOf(workspace: OpenWorkspace, branch: string): Promise<Branch> {
  workspace.info(branch);
  const found = (await branchesOf(workspace)).find(({ id }) => id === workspace.id(branch));
  return found ?? toBranch(workspace, workspace.info(branch), { changes: null, overlaps: 0 });
}

export async function workspaceOf(workspace: OpenWorkspace): Promise<Workspace> {
  const { problem } = workspace.link;
  if (problem !== null && !workspace.link.isOpen) {
    const message = problem.detail.fix === undefined ? problem.message : `${problem.message} ${problem.detail.fix}`;
    return {
      folder: workspace.folder,
      branches: [],
      commits: [],
      store: null,
      problem: { code: problem.code, message },
    };
  }
  const [branches, commits, store] = await Promise.all([
    branchesOf(workspace),
    workspace.commits(),
    workspace.status(),
  ]);
  return { folder: workspace.folder, branches, commits, store, problem: null };
}

function toBranch(workspace: OpenWorkspace, info: BranchInfo, delta: DeltaSummary): Branch {
  const record = workspace.record(info.id) ?? unknownRecord;
  const session = workspace.session(info.id);
  const { state, mount, ...rest } = info;
  return {
    ...rest,
    ...(mount === undefined ? {} : { mount, folder: mount }),
    id: workspace.id(info.id),
    parent: workspace.id(info.parent),
    children: info.children.map((child) => workspace.id(child)),
    ...(info.committedInto === undefined ? {} : { committedInto: workspace.id(info.committedInto) }),
    workspace: workspace.folder,
    person: personState(workspace, info, record, session.isRunning),
    fileState: state,
    hint: record.hint,
    agent: record.agent,
    machine: record.machine,
    terminal: workspace.id(info.id),
    exitCode: record.exitCode,
    note: record.note,
    changes: delta.changes,
    checks: record.checks,
    overlaps: delta.overlaps,
  };
}

function personState(workspace: OpenWorkspace, info: BranchInfo, record: BranchRecord, running: boolean): PersonState {
  if (workspace.committing.has(info.id)) return 'committing';
  if (info.state !== 'live') return info.state;
  if (running || record.phase === 'making') return 'running';
  if (record.exitCode === null || record.exitCode === 0)
    return record.note?.startsWith(FAILED) === true ? 'failed' : 'stopped';
  // A person leaves a shell with whatever status its last command had; an agent that works alone has failed.
  return findAgent(record.agent, record.command ?? undefined)?.takesHint === true && record.hint !== ''
    ? 'failed'
    : 'stopped';
}

/** Begins the note of a branch whose agent could not be started. */
export const FAILED = 'Did not start: ';

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
