// The workspaces that are open in this helper: opens them, puts in order what was left, and finds the one that a branch belongs to.
// Used by service.ts.
import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Survivor } from '../machines/machine.js';
import { isWithin } from '../machines/host-view.js';
import { isRunning } from '../machines/process-table.js';
import { BoughError } from '../protocol/failure.js';
import { endOrphans, endSurvivor } from './leftovers.js';
import { reconcile } from './reconcile.js';
import { OpenWorkspace, type Surroundings } from './workspace.js';

const LATECOMERS_MS = 3000;

export interface Found {
  readonly workspace: OpenWorkspace;
  /** boughfs' own id. */
  readonly branch: string;
}

export class Workspaces {
  private readonly open = new Map<string, OpenWorkspace>();
  /** Those that were put in order once. */
  private readonly settled = new Set<OpenWorkspace>();
  private readonly settling = new Map<OpenWorkspace, Promise<void>>();
  private survivors: readonly Survivor[] = [];

  constructor(private readonly around: Surroundings) {}

  /** Ends commands that nobody waits for, and opens the workspaces that have branches. Before any request is served. */
  async begin(): Promise<void> {
    const { database, machine, places, log } = this.around;
    const ended = await endOrphans(machine, places, ({ role }) => role === 'agent');
    if (ended > 0) log(`ended ${ended} commands that an earlier helper had started`);
    machine.clear();
    this.survivors = machine.survivors(places.state);
    // One that the earlier helper had only just begun to start may not have been there to be seen.
    setTimeout(() => void this.endUnheld().catch((error: unknown) => log(String(error))), LATECOMERS_MS).unref();
    for (const [hash, { folder }] of database.workspaces()) {
      const left =
        database.branches(hash).size > 0 || this.survivors.some(({ branch }) => branch.startsWith(key(hash)));
      // In the background: each request waits for its own workspace only.
      if (left) void this.get(folder);
    }
  }

  /** @param folder as a person names it */
  at(folder: string): Promise<OpenWorkspace> {
    // What was branched from a folder that is gone can still be looked at and discarded.
    if (this.known().includes(folder) && !existsSync(folder)) return this.get(folder);
    return this.get(realFolder(folder, this.around.places.state));
  }

  /** The workspace, whether its boughfs answers or not. @param folder real and absolute */
  async get(folder: string): Promise<OpenWorkspace> {
    let workspace = this.open.get(folder);
    if (!workspace) {
      workspace = new OpenWorkspace(folder, this.around);
      this.open.set(folder, workspace);
      const { database } = this.around;
      if (!database.workspaces().has(workspace.hash)) database.putWorkspace(workspace.hash, { folder, checks: null });
    }
    // One that could not be served is tried again at every request.
    if (!workspace.link.isOpen || !this.settled.has(workspace)) await this.settle(workspace);
    return workspace;
  }

  /** A workspace whose boughfs answers; else its problem is thrown. */
  async usable(folder: string): Promise<OpenWorkspace> {
    return served(await this.at(folder));
  }

  /** @param id of a branch, as faces know it */
  async find(id: string): Promise<Found> {
    const [prefix = '', branch = ''] = id.split('.');
    for (const [hash, { folder }] of this.around.database.workspaces()) {
      if (key(hash) !== `${prefix}.`) continue;
      const workspace = served(await this.get(folder));
      workspace.info(branch);
      return { workspace, branch };
    }
    throw new BoughError('E_NO_BRANCH', `There is no branch "${id}".`, { fix: 'List the branches of the workspace.' });
  }

  /** Ends programs that nobody holds; how many there were. */
  endUnheld(): Promise<number> {
    const { machine, places } = this.around;
    return endOrphans(machine, places, (survivor) => this.isHeld(survivor));
  }

  /** Started by this helper, taken up by it, or of a workspace that could not be opened yet. */
  private isHeld({ branch, role, init, starter }: Survivor): boolean {
    if (starter === process.pid) return true;
    const workspace = this.all().find(({ hash }) => branch.startsWith(key(hash)));
    if (workspace === undefined || !this.settled.has(workspace)) {
      return role === 'agent' && this.survivors.some((earlier) => earlier.init.pid === init.pid);
    }
    return [...workspace.openSessions().values()].some((session) => session.init?.pid === init.pid);
  }

  known(): string[] {
    return [...this.around.database.workspaces().values()].map(({ folder }) => folder);
  }

  all(): OpenWorkspace[] {
    return [...this.open.values()];
  }

  private settle(workspace: OpenWorkspace): Promise<void> {
    let settling = this.settling.get(workspace);
    if (!settling) {
      settling = this.openLink(workspace).finally(() => this.settling.delete(workspace));
      this.settling.set(workspace, settling);
    }
    return settling;
  }

  /** Opens the link; the first time that works, also puts in order what was left. A problem stays readable on the link. */
  private async openLink(workspace: OpenWorkspace): Promise<void> {
    try {
      await workspace.link.open();
      await workspace.refresh();
      if (this.settled.has(workspace)) return;
      const agents = await this.agentsOf(workspace);
      await workspace.lock.run(() => reconcile(workspace, agents));
      this.settled.add(workspace);
      workspace.link.problem = null;
    } catch (error) {
      this.around.log(`${workspace.folder}: ${String(error)}`);
      workspace.link.problem ??= error instanceof BoughError ? error : new BoughError('E_INTERNAL', String(error));
    }
  }

  /** Agents that still run, by boughfs' ids. One whose start was never noted, or whose branch is gone, has nobody: it ends. */
  private async agentsOf(workspace: OpenWorkspace): Promise<Map<string, Survivor>> {
    const agents = new Map<string, Survivor>();
    for (const survivor of this.survivors) {
      if (!survivor.branch.startsWith(key(workspace.hash)) || !isRunning(survivor.init)) continue;
      const branch = survivor.branch.slice(key(workspace.hash).length);
      const noted = workspace.record(branch)?.run;
      if (workspace.infos.has(branch) && noted?.pid === survivor.init.pid) agents.set(branch, survivor);
      else await endSurvivor(survivor);
    }
    return agents;
  }
}

/** How the ids of a workspace's branches begin. */
function key(hash: string): string {
  return `${hash.slice(0, 8)}.`;
}

function served(workspace: OpenWorkspace): OpenWorkspace {
  if (workspace.link.problem) throw workspace.link.problem;
  return workspace;
}

/** The real path of a folder that can be branched. */
export function realFolder(folder: string, state: string): string {
  if (!isAbsolute(folder)) {
    throw new BoughError('E_BAD_FOLDER', `${folder} is not an absolute path.`, {
      fix: 'Give the whole path of the folder.',
    });
  }
  // Below our state are mounts, dead ones perhaps: not to be touched to find out what they are.
  if (isWithin(folder, state)) throw insideState(folder);
  let real: string;
  let directory: boolean;
  try {
    real = realpathSync(folder);
    directory = lstatSync(real).isDirectory();
  } catch (cause) {
    throw new BoughError(
      'E_BASE_GONE',
      `The folder ${folder} cannot be entered: ${cause instanceof Error ? cause.message : String(cause)}.`,
      { fix: 'Mount it or put it back; its branches are kept and come back with it.' },
      { cause },
    );
  }
  if (!directory) throw new BoughError('E_BAD_FOLDER', `${folder} is not a folder.`, { fix: 'Open a folder.' });
  if (isWithin(real, state)) throw insideState(folder);
  if (['/', '/proc', '/sys', '/dev'].includes(real)) {
    throw new BoughError('E_BAD_FOLDER', `${real} cannot be branched in process mode.`, {
      fix: 'Open a project folder.',
    });
  }
  return real;
}

function insideState(folder: string): BoughError {
  return new BoughError('E_IS_BRANCH', `${folder} lies in Bough's own state: it is a branch or part of one.`, {
    fix: 'Open the folder that it was branched from.',
  });
}
