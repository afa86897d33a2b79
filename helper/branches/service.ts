// The helper's one service: everything a face can ask about branches. The faces in helper/api only check and translate. Holds the
// open workspaces and finds the one that a branch id belongs to.
import { listAgents } from '../agents/presets.js';
import { runDoctor } from '../doctor/doctor.js';
import type { Side, WirePath } from '../protocol/boughfs.js';
import { BoughError } from '../protocol/failure.js';
import type { Branch, CheckRun, Requests } from '../protocol/rpc.js';
import type { TerminalWatcher } from '../sessions/session.js';
import type { AuditSubject } from '../state/audit.js';
import { runChecks } from './checks.js';
import { allChanges, commit, rebase, undo } from './committing.js';
import { detachDeadMounts, removeDeadSockets } from './leftovers.js';
import { commandRequest, fork, start, startAgent } from './making.js';
import { readWhole } from './merging.js';
import { patchOf } from './patch.js';
import { strayFolders } from './reconcile.js';
import { branchesOf, branchOf, workspaceOf } from './view.js';
import { pathKey } from '../protocol/wire-path.js';
import type { OpenWorkspace, Surroundings } from './workspace.js';
import { Workspaces } from './workspaces.js';

type In<M extends keyof Requests> = Requests[M][0];
type Out<M extends keyof Requests> = Promise<Requests[M][1]>;

const EXEC_KEEP_BYTES = 8 * 1024 * 1024;
const AUDIT_LINES = 200;

export class BranchService {
  private readonly spaces: Workspaces;
  private readonly operations = new Map<string, Promise<unknown>>();
  private busy = 0;

  constructor(private readonly around: Surroundings) {
    this.spaces = new Workspaces(around);
  }

  /** Puts in order what earlier helpers left. Before any request is served. */
  begin(): Promise<void> {
    return this.spaces.begin();
  }

  /** Whether nothing runs that an exit would end. */
  get isIdle(): boolean {
    const sessions = this.spaces.all().flatMap((workspace) => [...workspace.openSessions().values()]);
    return this.busy === 0 && !sessions.some(({ isRunning }) => isRunning);
  }

  // --- workspaces

  async openWorkspace({ folder }: In<'bough/open'>): Out<'bough/open'> {
    return workspaceOf(await this.spaces.at(folder));
  }

  async workspaces(): Out<'bough/workspaces'> {
    const workspaces = this.spaces.known().map(async (folder) => workspaceOf(await this.spaces.get(folder)));
    return { workspaces: await Promise.all(workspaces) };
  }

  async list({ folder }: In<'bough/list'>): Out<'bough/list'> {
    return { branches: await branchesOf(await this.spaces.usable(folder)) };
  }

  async agents(): Out<'bough/agents'> {
    return { agents: listAgents(this.around.environment) };
  }

  async doctor({ folder }: In<'bough/doctor'>): Out<'bough/doctor'> {
    return runDoctor({ environment: this.around.environment, ...(folder === undefined ? {} : { folder }) });
  }

  async audit({ folder, limit }: In<'bough/audit'>): Out<'bough/audit'> {
    const workspace = await this.spaces.at(folder);
    return { lines: workspace.audit.last(limit ?? AUDIT_LINES) };
  }

  // --- making and ending branches

  async start(request: In<'bough/start'>): Promise<Branch> {
    const workspace = await this.spaces.usable(request.folder);
    const entry = { what: 'start', agent: request.agent, network: request.network ?? false };
    const id = await this.change(workspace, entry, () => start(workspace, request));
    return branchOf(workspace, id);
  }

  async branch(request: In<'bough/branch'>): Out<'bough/branch'> {
    const { workspace, branch } = await this.spaces.find(request.branch);
    const entry = { what: 'branch', branch: request.branch, count: request.count };
    const { ids, pauseUs } = await this.change(workspace, entry, () => fork(workspace, branch, request));
    const all = new Map((await branchesOf(workspace)).map((each) => [each.id, each]));
    // In the order of the hints.
    return { branches: ids.flatMap((id) => all.get(workspace.id(id)) ?? []), pauseUs };
  }

  async stop(request: In<'bough/stop'>): Promise<Branch> {
    const { workspace, branch } = await this.spaces.find(request.branch);
    await workspace.audit.around({ what: 'stop', branch: request.branch }, () =>
      workspace.session(branch).stop('Stopped by a person.'),
    );
    return branchOf(workspace, branch);
  }

  async abort({ branch: id, recursive }: In<'bough/abort'>): Out<'bough/abort'> {
    const { workspace, branch } = await this.spaces.find(id);
    return this.change(workspace, { what: 'abort', branch: id }, async () => {
      const doomed = this.below(workspace, branch);
      const live = doomed.filter((each) => each !== branch && workspace.info(each).state === 'live');
      if (live.length > 0 && recursive !== true) {
        throw new BoughError(
          'E_HAS_CHILDREN',
          `The branch ${workspace.info(branch).name} has live branches of its own.`,
          {
            fix: 'Discard those first, or discard it with all its branches.',
          },
        );
      }
      // Programs first: nothing may hold a file open, or write into what is being dropped.
      await Promise.all(doomed.map((each) => workspace.session(each).close()));
      const { branches } = await workspace.link.request('branch.abort', { branch, recursive: recursive ?? false });
      await workspace.forget(branches);
      return { branches: branches.map((each) => workspace.id(each)) };
    });
  }

  async rename({ branch: id, name }: In<'bough/rename'>): Promise<Branch> {
    const { workspace, branch } = await this.spaces.find(id);
    const info = await workspace.link.request('branch.rename', { branch, name });
    workspace.infos.set(branch, info);
    workspace.changed();
    return branchOf(workspace, branch);
  }

  async mount({ branch: id }: In<'bough/mount'>): Out<'bough/mount'> {
    const { workspace, branch } = await this.spaces.find(id);
    return { folder: await workspace.mount(branch) };
  }

  // --- looking

  async diff(request: In<'bough/diff'>): Out<'bough/diff'> {
    const { workspace, branch } = await this.spaces.find(request.branch);
    return workspace.link.request('branch.diff', { ...request, ...against(workspace, request.against), branch });
  }

  async stat({ branch: id, side, path }: In<'bough/stat'>): Out<'bough/stat'> {
    const { workspace, branch } = await this.spaces.find(id);
    return workspace.link.request('branch.stat', { branch, side, path });
  }

  async readdir({ branch: id, side, path }: In<'bough/readdir'>): Out<'bough/readdir'> {
    const { workspace, branch } = await this.spaces.find(id);
    return workspace.link.request('branch.readdir', { branch, side, path });
  }

  async read({ branch: id, side, path }: In<'bough/read'>): Out<'bough/read'> {
    const { workspace, branch } = await this.spaces.find(id);
    const content = await readWhole(workspace.link, branch, side, path);
    return { data: content.toString('base64'), size: content.length };
  }

  async patch({ branch: id, paths }: In<'bough/patch'>): Out<'bough/patch'> {
    const { workspace, branch } = await this.spaces.find(id);
    const wanted = paths === undefined ? null : new Set(paths.map(pathKey));
    const changes = (await allChanges(workspace, branch)).filter(({ path }) => wanted?.has(pathKey(path)) !== false);
    const text = await patchOf(changes, {
      before: (path) => this.content(workspace, branch, 'point', path),
      after: (path) => this.content(workspace, branch, 'branch', path),
    });
    return { text };
  }

  async conflicts({ branch: id }: In<'bough/conflicts'>): Out<'bough/conflicts'> {
    const { workspace, branch } = await this.spaces.find(id);
    return workspace.link.request('branch.conflicts', { branch });
  }

  // --- running commands

  async exec({ branch: id, command, timeoutMs }: In<'bough/exec'>, signal: AbortSignal): Out<'bough/exec'> {
    const { workspace, branch } = await this.spaces.find(id);
    await workspace.mount(branch);
    const entry = { what: 'exec', branch: id, program: command[0] ?? '' };
    return this.counted(() =>
      workspace.audit.around(entry, () =>
        workspace.session(branch).command(commandRequest(workspace, branch, 'exec', command), {
          signal,
          keepBytes: EXEC_KEEP_BYTES,
          ...(timeoutMs === undefined ? {} : { timeoutMs }),
        }),
      ),
    );
  }

  async checks({ branch: id, command }: In<'bough/checks'>, signal: AbortSignal): Promise<CheckRun> {
    const { workspace, branch } = await this.spaces.find(id);
    await workspace.mount(branch);
    return this.counted(() =>
      workspace.audit.around({ what: 'checks', branch: id }, () => runChecks(workspace, branch, command, signal)),
    );
  }

  // --- changing

  async resolve({ branch: id, path, take, data }: In<'bough/resolve'>): Out<'bough/resolve'> {
    const { workspace, branch } = await this.spaces.find(id);
    const entry = { what: 'resolve', branch: id, take };
    await this.change(workspace, entry, () =>
      workspace.link.request('branch.resolve', { branch, path, take, ...(data === undefined ? {} : { data }) }),
    );
    workspace.deltas.clear();
    return {};
  }

  async revert({ branch: id, paths }: In<'bough/revert'>): Out<'bough/revert'> {
    const { workspace, branch } = await this.spaces.find(id);
    return this.change(workspace, { what: 'revert', branch: id, paths: paths.length }, () =>
      workspace.link.request('branch.revert', { branch, paths }),
    );
  }

  async take({ branch: id, from, paths }: In<'bough/take'>): Out<'bough/take'> {
    const { workspace, branch } = await this.spaces.find(id);
    const other = await this.spaces.find(from);
    if (other.workspace !== workspace) {
      throw new BoughError('E_BAD_REQUEST', 'The two branches are of different workspaces.', {
        fix: 'Take files from a branch of the same workspace.',
      });
    }
    return this.change(workspace, { what: 'take', branch: id, paths: paths.length }, () =>
      workspace.link.request('branch.take', { branch, from: other.branch, paths }),
    );
  }

  async commit(request: In<'bough/commit'>): Out<'bough/commit'> {
    const { workspace, branch } = await this.spaces.find(request.branch);
    const entry = { what: 'commit', branch: request.branch, partial: request.paths !== undefined };
    const { branch: _, operation, ...rest } = request;
    return this.once(operation, () => this.change(workspace, entry, () => commit(workspace, { ...rest, branch })));
  }

  async undo({ folder, commit: id }: In<'bough/undo'>): Out<'bough/undo'> {
    const workspace = await this.spaces.usable(folder);
    return this.change(workspace, { what: 'undo' }, () => undo(workspace, id));
  }

  async rebase({ branch: id }: In<'bough/rebase'>): Out<'bough/rebase'> {
    const { workspace, branch } = await this.spaces.find(id);
    return this.change(workspace, { what: 'rebase', branch: id }, () => rebase(workspace, branch));
  }

  // --- terminals

  async watchTerminal(
    { branch: id, rows, columns, shell }: In<'bough/terminal/open'>,
    watcher: TerminalWatcher,
  ): Promise<{ readonly result: Requests['bough/terminal/open'][1]; readonly stop: () => void }> {
    const { workspace, branch } = await this.spaces.find(id);
    const session = workspace.session(branch);
    if (shell === true && !session.isRunning) {
      await workspace.mount(branch);
      await startAgent(workspace, branch, { resume: false, size: { rows, columns }, banner: '', shell: true });
    }
    const { replay, stop } = session.watch(watcher);
    session.resize(rows, columns);
    const exitCode = session.isRunning ? null : (workspace.record(branch)?.exitCode ?? null);
    return { result: { terminal: workspace.id(branch), replay, running: session.isRunning, exitCode }, stop };
  }

  async input({ terminal, data }: In<'bough/terminal/input'>): Out<'bough/terminal/input'> {
    const { workspace, branch } = await this.spaces.find(terminal);
    workspace.session(branch).input(data);
    return {};
  }

  async resize({ terminal, rows, columns }: In<'bough/terminal/resize'>): Out<'bough/terminal/resize'> {
    const { workspace, branch } = await this.spaces.find(terminal);
    workspace.session(branch).resize(rows, columns);
    return {};
  }

  // --- ending and cleaning

  async gc(): Out<'bough/gc'> {
    const { places, environment } = this.around;
    const workspaces = this.spaces.all();
    const processes = await this.spaces.endUnheld();
    let files = (await removeDeadSockets(places)) + this.around.machine.clear();
    for (const workspace of workspaces.filter(({ link }) => link.isOpen)) {
      files += await workspace.lock.run(async () => {
        const strays = strayFolders(workspace);
        await workspace.forget(strays);
        return strays.length;
      });
    }
    return { mounts: await detachDeadMounts(places, environment), processes, files };
  }

  /** Ends all agents and every boughfs. */
  async shutdown(): Promise<void> {
    for (const workspace of this.spaces.all()) {
      await Promise.all(
        [...workspace.openSessions().values()].map((session) => session.stop('Stopped with the helper.')),
      );
      await workspace.link.stop();
    }
  }

  /** Leaves agents and boughfs to the next helper. */
  async detach(): Promise<void> {
    for (const workspace of this.spaces.all()) {
      await Promise.all([...workspace.openSessions().values()].map((session) => session.flush()));
      workspace.link.detach();
    }
  }

  // --- inside

  private async change<T>(workspace: OpenWorkspace, entry: AuditSubject, action: () => Promise<T>): Promise<T> {
    return this.counted(() => workspace.audit.around(entry, () => workspace.lock.run(action)));
  }

  private async counted<T>(action: () => Promise<T>): Promise<T> {
    this.busy++;
    try {
      return await action();
    } finally {
      this.busy--;
    }
  }

  /** The same operation id twice is one operation: a client that lost the answer may ask again. */
  private once<T>(operation: string | undefined, action: () => Promise<T>): Promise<T> {
    if (operation === undefined) return action();
    const known = this.operations.get(operation) as Promise<T> | undefined;
    if (known) return known;
    const running = action();
    this.operations.set(operation, running);
    // A failed one may be tried again under the same name; of the others the last hundred are remembered.
    running.catch(() => this.operations.delete(operation));
    for (const oldest of [...this.operations.keys()].slice(0, -100)) this.operations.delete(oldest);
    return running;
  }

  private below(workspace: OpenWorkspace, branch: string): string[] {
    return [branch, ...workspace.info(branch).children.flatMap((child) => this.below(workspace, child))];
  }

  private async content(workspace: OpenWorkspace, branch: string, side: Side, path: WirePath): Promise<Buffer> {
    const stat = await workspace.link.request('branch.stat', { branch, side, path });
    return stat.type === 'symlink' ? Buffer.from(stat.target ?? '') : readWhole(workspace.link, branch, side, path);
  }
}

/** A branch to compare with, by boughfs' own id. */
function against(workspace: OpenWorkspace, other: string | undefined): { readonly against?: string } {
  if (other === undefined) return {};
  const prefix = workspace.id('');
  return { against: other.startsWith(prefix) ? other.slice(prefix.length) : other };
}
