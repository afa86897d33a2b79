// One workspace that is open: its link to boughfs, the branches as last told, their sessions and records. The services in this
// folder work on it; it decides nothing itself.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { BoughfsEvent, BranchInfo, CommitInfo, StoreStatus } from '../protocol/boughfs.js';
import { BoughError } from '../protocol/failure.js';
import { StoreLink } from '../files/store-link.js';
import type { Machine } from '../machines/machine.js';
import { isWithin } from '../machines/host-view.js';
import { probeFuse } from '../native/addon.js';
import { Session } from '../sessions/session.js';
import { Transcript } from '../sessions/transcript.js';
import { Audit } from '../state/audit.js';
import type { BranchRecord, Database } from '../state/database.js';
import { storePlaces, type Places, type StorePlaces } from '../state/places.js';
import { Deltas } from './deltas.js';
import { Mutex } from './mutex.js';
import { removeTree } from './remove-tree.js';

export interface Surroundings {
  readonly places: Places;
  readonly database: Database;
  readonly machine: Machine;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: (message: string) => void;
  /** Something of the workspace changed. */
  readonly changed: (folder: string) => void;
}

export interface BranchPlaces {
  readonly root: string;
  readonly home: string;
  readonly tmp: string;
  readonly transcript: string;
  readonly mount: string;
}

/** Of a workspace that holds the person's home: these are never part of a branch. */
const personal = [
  '.ssh',
  '.gnupg',
  '.aws',
  '.azure',
  '.config/gcloud',
  '.kube',
  '.netrc',
  '.git-credentials',
  '.docker',
];

export class OpenWorkspace {
  readonly at: StorePlaces;
  readonly link: StoreLink;
  readonly audit: Audit;
  readonly deltas: Deltas;
  readonly lock = new Mutex();
  /** By boughfs' ids. */
  readonly infos = new Map<string, BranchInfo>();
  readonly committing = new Set<string>();
  private readonly sessions = new Map<string, Session>();

  constructor(
    readonly folder: string,
    readonly around: Surroundings,
  ) {
    this.at = storePlaces(around.places, folder);
    const home = around.environment['HOME'] ?? '/';
    // Anchored at the base: the same names elsewhere in the workspace are the person's business.
    const below = home === folder ? '/' : `/${home.slice(folder.length).replace(/^\//, '')}/`;
    this.link = new StoreLink(
      {
        folder,
        at: this.at,
        places: around.places,
        hide: isWithin(home, folder) ? personal.map((name) => below + name) : [],
        environment: around.environment,
      },
      {
        event: (event) => this.onEvent(event),
        lost: () => this.onLost(),
        restored: () => void this.refresh().catch(() => this.changed()),
      },
    );
    this.audit = new Audit(this.at.audit);
    this.deltas = new Deltas(this.link, () => this.changed());
  }

  get hash(): string {
    return this.at.hash;
  }

  /** Ids are unique over all workspaces of a person. */
  id(branch: string): string {
    return branch === 'base' ? branch : `${this.hash.slice(0, 8)}.${branch}`;
  }

  changed(): void {
    this.around.changed(this.folder);
  }

  /** Reads all branches anew: events tell of edits a little later than they happen. */
  async read(): Promise<void> {
    const { branches } = await this.link.request('branch.list', {});
    this.infos.clear();
    for (const info of branches) this.infos.set(info.id, info);
  }

  async refresh(): Promise<void> {
    await this.read();
    this.changed();
  }

  info(branch: string): BranchInfo {
    const info = this.infos.get(branch);
    if (info) return info;
    throw new BoughError('E_NO_BRANCH', `There is no branch ${this.id(branch)} in ${this.folder}.`, {
      fix: 'List the branches: it may have been discarded.',
    });
  }

  record(branch: string): BranchRecord | undefined {
    return this.around.database.branch(this.hash, branch);
  }

  update(branch: string, change: Partial<BranchRecord>): void {
    this.around.database.updateBranch(this.hash, branch, change);
    this.changed();
  }

  placesOf(branch: string): BranchPlaces {
    const root = join(this.at.branches, branch);
    return {
      root,
      home: join(root, 'home'),
      tmp: join(root, 'tmp'),
      transcript: join(root, 'transcript'),
      mount: join(this.at.mounts, branch),
    };
  }

  /** The branch's programs; made at first use. */
  session(branch: string): Session {
    const known = this.sessions.get(branch);
    if (known) return known;
    const made = new Session(this.around.machine, new Transcript(this.placesOf(branch).transcript), (ending) => {
      this.update(branch, { run: null, exitCode: ending.exitCode, note: ending.note });
    });
    this.sessions.set(branch, made);
    return made;
  }

  openSessions(): ReadonlyMap<string, Session> {
    return this.sessions;
  }

  /** Mounts the branch where it belongs, if it is not, and says where. */
  async mount(branch: string): Promise<string> {
    const { mount } = this.placesOf(branch);
    if (this.info(branch).mount === mount) return mount;
    mkdirSync(mount, { recursive: true, mode: 0o700 });
    const { at } = await this.link.request('branch.mount', { branch, at: mount }).catch((error: unknown) => {
      throw mountProblem(error);
    });
    const info = this.infos.get(branch);
    if (info) this.infos.set(branch, { ...info, mount: at });
    return at;
  }

  /** Removes what is kept beside branches that are gone. */
  async forget(branches: readonly string[]): Promise<void> {
    for (const branch of branches) {
      this.infos.delete(branch);
      await this.sessions.get(branch)?.close();
      this.sessions.delete(branch);
    }
    this.deltas.forget(branches);
    for (const branch of branches) {
      await removeTree(this.placesOf(branch).root);
      await removeTree(this.placesOf(branch).mount, { onlyEmpty: true });
    }
    // Last: as long as the record is there, the next start finds what is left of it.
    this.around.database.removeBranches(this.hash, branches);
    this.changed();
  }

  async commits(): Promise<readonly CommitInfo[]> {
    return (await this.link.request('commit.list', {})).commits.map((commit) => ({
      ...commit,
      branch: this.id(commit.branch),
      into: this.id(commit.into),
    }));
  }

  status(): Promise<StoreStatus> {
    return this.link.request('store.status', {});
  }

  private onEvent(event: BoughfsEvent): void {
    if (event.event === 'branch') this.infos.set(event.branch.id, event.branch);
    if (event.event === 'gone') {
      for (const branch of event.branches) this.infos.delete(branch);
      // An abort that an earlier helper had asked for may end only now.
      void this.lock.run(() => this.forget(event.branches)).catch((error: unknown) => this.around.log(String(error)));
    }
    if (event.event === 'edits') {
      const info = this.infos.get(event.branch);
      if (info) this.infos.set(event.branch, { ...info, edits: event.edits });
    }
    this.changed();
  }

  private onLost(): void {
    this.around.log(`boughfs of ${this.folder} ended unexpectedly; it is started again`);
    this.audit.add({ what: 'boughfs-lost', outcome: 'ok' });
    // A program keeps the dead mount in its own namespace; only a new one sees the one that comes back.
    for (const session of this.sessions.values()) {
      void session.stop('The file server ended unexpectedly. The files are safe; start the agent again.');
    }
    this.changed();
  }
}

/** A mount that failed because FUSE is not there at all says that instead. */
function mountProblem(error: unknown): unknown {
  if (!(error instanceof BoughError) || error.code !== 'E_MOUNT') return error;
  const fuse = probeFuse();
  if (fuse.open) return error;
  return new BoughError(
    'E_NO_FUSE',
    `/dev/fuse cannot be opened (${fuse.errno ?? 'unknown'}), so no branch can be shown.`,
    {
      fix: 'sudo modprobe fuse; in a container, start it with: --device /dev/fuse --cap-add SYS_ADMIN',
    },
  );
}
