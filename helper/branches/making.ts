// Start Agent and Branch Agent Here: files first, then HOME, then the agent; whatever fails leaves nothing half made. Used by
// service.ts.
import { mkdirSync } from 'node:fs';
import { agentArgv, agentEnvironment, findAgent, missingReason, type AgentDefinition } from '../agents/presets.js';
import { BoughError, errorCode } from '../protocol/failure.js';
import type { Requests } from '../protocol/rpc.js';
import type { Enclosure, RunRequest } from '../machines/machine.js';
import { requireBubblewrap } from '../machines/process-machine.js';
import { copyHome, hasState, makeHome } from '../sessions/home.js';
import type { BranchRecord } from '../state/database.js';
import { gitIdentity } from './git-commit.js';
import { FAILED, unknownRecord } from './view.js';
import type { OpenWorkspace } from './workspace.js';

type Start = Requests['bough/start'][0];
type Fork = Requests['bough/branch'][0];

const SIZE = { rows: 24, columns: 80 };
/** A branch that holds an instant (a checkpoint): no program runs in it. */
export const NO_AGENT = 'none';

/** Returns boughfs' id of the new branch. */
export async function start(workspace: OpenWorkspace, request: Start): Promise<string> {
  const { environment } = workspace.around;
  const agent = agentUnlessNone(workspace, request.agent, request.command);
  if (request.machine === 'microvm') throw noMicrovm();
  if (agent !== null) requireBubblewrap(environment);
  const identity = gitIdentity(workspace.folder);
  const name = request.name ?? freeNames(workspace, request.agent, 1)[0] ?? request.agent;
  const { branches } = await workspace.link.request('branch.create', {
    parent: 'base',
    count: 1,
    group: 'independent',
    names: [name],
  });
  const info = branches[0];
  if (!info) throw new BoughError('E_INTERNAL', 'boughfs made no branch.');
  const record: BranchRecord = {
    ...unknownRecord,
    phase: 'making',
    hint: request.hint ?? '',
    agent: request.agent,
    command: request.command ?? null,
    network: request.network ?? false,
  };
  try {
    workspace.around.database.putBranches(workspace.hash, new Map([[info.id, record]]));
    workspace.infos.set(info.id, info);
    await workspace.mount(info.id);
    const at = workspace.placesOf(info.id);
    mkdirSync(at.tmp, { recursive: true, mode: 0o700 });
    const person = environment['HOME'] ?? '/';
    await makeHome(at.home, person, agent?.state ?? [], workspace.folder, await identity);
    const size = { rows: request.rows ?? SIZE.rows, columns: request.columns ?? SIZE.columns };
    if (agent === null) workspace.update(info.id, { phase: 'ready' });
    else await startAgent(workspace, info.id, { resume: false, size, banner: hintBanner(agent, record.hint) });
  } catch (error) {
    await workspace.openSessions().get(info.id)?.close();
    const { branches: gone } = await workspace.link.request('branch.abort', { branch: info.id, recursive: true });
    await workspace.forget(gone);
    throw error;
  }
  return info.id;
}

/** Returns boughfs' ids of the children. */
export async function fork(
  workspace: OpenWorkspace,
  parent: string,
  request: Fork,
): Promise<{ readonly ids: readonly string[]; readonly pauseUs: number }> {
  const parentInfo = workspace.info(parent);
  const parentRecord = workspace.record(parent) ?? unknownRecord;
  const pattern = agentRecordOf(workspace, parent);
  const agentId = request.agent ?? pattern.agent;
  const command = request.command ?? (request.agent === undefined ? pattern.command : null);
  const agent = agentUnlessNone(workspace, agentId, command ?? undefined);
  if (agent !== null) requireBubblewrap(workspace.around.environment);
  const { branches, pauseUs } = await workspace.link.request('branch.create', {
    parent,
    count: request.count,
    group: request.group ?? 'exclusive',
    names: freeNames(workspace, parentInfo.name, request.count),
    flush: true,
  });
  const hints = branches.map((_, index) => request.hints?.[index] ?? '');
  const records = branches.map((info, index): [string, BranchRecord] => [
    info.id,
    {
      ...unknownRecord,
      phase: 'making',
      hint: hints[index] ?? '',
      agent: agentId,
      command,
      network: parentRecord.network,
    },
  ]);
  workspace.around.database.putBranches(workspace.hash, new Map(records));
  for (const info of branches) workspace.infos.set(info.id, info);
  const from = workspace.placesOf(parent).home;
  await Promise.all(
    branches.map(async ({ id }, index) => {
      try {
        await workspace.mount(id);
        const at = workspace.placesOf(id);
        mkdirSync(at.tmp, { recursive: true, mode: 0o700 });
        await copyHome(at.home, from);
        if (agent === null) {
          workspace.update(id, { phase: 'ready' });
          return;
        }
        const resume = agentId === pattern.agent && (await hasState(at.home, agent.state));
        const banner = `[Branched from ${oneLine(parentInfo.name)}: its files are those of that instant; its agent starts anew.]\r\n`;
        await startAgent(workspace, id, { resume, size: SIZE, banner: banner + hintBanner(agent, hints[index] ?? '') });
      } catch (error) {
        // The files have forked: the branch stays, and says what its agent lacks.
        const because = error instanceof Error ? error.message : String(error);
        workspace.around.log(`agent of ${workspace.id(id)} did not start: ${errorCode(error)} ${because}`);
        workspace.update(id, { phase: 'ready', note: FAILED + because });
      }
    }),
  );
  return { ids: branches.map(({ id }) => id), pauseUs };
}

interface AgentStart {
  readonly resume: boolean;
  readonly size: { readonly rows: number; readonly columns: number };
  readonly banner: string;
  /** A shell for the person, whatever the branch's agent is. */
  readonly shell?: boolean;
}

/** Starts the branch's agent on its terminal and remembers it. */
export async function startAgent(workspace: OpenWorkspace, branch: string, options: AgentStart): Promise<void> {
  const record = workspace.record(branch) ?? unknownRecord;
  const shell = options.shell === true;
  const agent = shell
    ? requireAgent(workspace, 'shell')
    : requireAgent(workspace, record.agent, record.command ?? undefined);
  const launch = { hint: shell ? '' : record.hint, resume: options.resume, root: process.getuid?.() === 0 };
  const { environment } = workspace.around;
  const request: RunRequest = {
    role: 'agent',
    branch: workspace.id(branch),
    enclosure: enclosureOf(workspace, branch, agent.readOnly(environment)),
    command: agentArgv(agent, launch, environment),
    environment: {
      ...agentEnvironment(agent, launch, environment),
      TERM: 'xterm-256color',
      BOUGH_HINT: record.hint,
    },
    terminal: options.size,
  };
  const init = await workspace.session(branch).start(request, options.banner);
  // An agent that has ended already said so before: its ending must not be overwritten.
  const ended = workspace.session(branch).isRunning ? { run: init, exitCode: null, note: null } : {};
  workspace.update(branch, { phase: 'ready', ...ended });
}

/** A command beside the agent, with the environment of a shell. */
export function commandRequest(
  workspace: OpenWorkspace,
  branch: string,
  role: 'exec' | 'check',
  command: readonly string[],
): RunRequest {
  const { environment } = workspace.around;
  const agent = requireAgent(workspace, 'shell');
  return {
    role,
    branch: workspace.id(branch),
    enclosure: enclosureOf(workspace, branch, []),
    command,
    environment: agentEnvironment(agent, { hint: '', resume: false, root: false }, environment),
  };
}

function enclosureOf(workspace: OpenWorkspace, branch: string, readOnly: readonly string[]): Enclosure {
  const at = workspace.placesOf(branch);
  const { places } = workspace.around;
  for (const folder of [at.home, at.tmp]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return {
    folder: workspace.folder,
    mount: at.mount,
    home: at.home,
    tmp: at.tmp,
    hidden: [places.state, places.runtime],
    readOnly,
    network: (workspace.record(branch) ?? unknownRecord).network,
  };
}

/** The record of the branch or of its nearest ancestor that has an agent. */
function agentRecordOf(workspace: OpenWorkspace, branch: string): BranchRecord {
  const record = workspace.record(branch) ?? unknownRecord;
  const parent = workspace.infos.get(branch)?.parent ?? 'base';
  return record.agent !== NO_AGENT || parent === 'base' || !workspace.infos.has(parent)
    ? record
    : agentRecordOf(workspace, parent);
}

function agentUnlessNone(workspace: OpenWorkspace, id: string, command?: readonly string[]): AgentDefinition | null {
  return id === NO_AGENT ? null : requireAgent(workspace, id, command);
}

function requireAgent(workspace: OpenWorkspace, id: string, command?: readonly string[]): AgentDefinition {
  const agent = findAgent(id, command);
  if (!agent) {
    throw new BoughError('E_NO_AGENT', `There is no agent "${id}".`, {
      fix: 'Choose one of: bough doctor lists them; or give a command.',
    });
  }
  const missing = command === undefined ? missingReason(agent, workspace.around.environment) : undefined;
  if (missing !== undefined)
    throw new BoughError('E_NO_AGENT', `The agent "${id}" cannot run here: ${missing}.`, { fix: agent.install });
  return agent;
}

function noMicrovm(): BoughError {
  return new BoughError('E_NO_MICROVM', 'This version of Bough has no microVM.', {
    fix: 'Use process isolation: files fork, a running process does not.',
  });
}

/** An agent that takes no hint leaves it to the person at its terminal. */
function hintBanner(agent: AgentDefinition, hint: string): string {
  return hint === '' || agent.takesHint ? '' : `[Hint: ${oneLine(hint)}]\r\n`;
}

/** Nothing of a name or a hint may act on the terminal. */
function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is to go
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
}

/** `name-1`, `name-2`…, none of them taken. */
export function freeNames(workspace: OpenWorkspace, name: string, count: number): string[] {
  const taken = new Set([...workspace.infos.values()].map((info) => info.name));
  const names: string[] = [];
  for (let number = 1; names.length < count; number++) {
    const candidate = `${name}-${number}`;
    if (!taken.has(candidate)) names.push(candidate);
  }
  return names;
}
