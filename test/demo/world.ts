// A place of its own for one run: a fresh sample, own XDG folders, a helper that belongs to nobody else; and what is left of
// it. Used by the demo and by test/cli.
import { lstatSync, readdirSync, readFileSync, type Dirent } from 'node:fs';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { connect, errorCode, type HelperClient } from '../../helper/api/client.js';
import { places } from '../../helper/state/places.js';
import { makeSample } from '../fixtures/make-sample.js';
import { mountsBelow, run, until } from '../harness.js';

/** In the environment of the helper and of all that it starts outside of a sandbox. */
const TAG = 'BOUGH_DEMO_RUN';

export interface Leftovers {
  readonly mounts: number;
  readonly processes: number;
  readonly files: number;
  readonly bytes: number;
  /** What they are, for the report. */
  readonly names: readonly string[];
}

export class World {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'bough-demo-')));
  readonly folder = join(this.root, 'sample');
  readonly environment: NodeJS.ProcessEnv;
  private readonly tag = randomBytes(8).toString('hex');

  constructor() {
    for (const name of ['run', 'state', 'cache', 'home']) mkdirSync(join(this.root, name), { mode: 0o700 });
    makeSample(this.folder);
    this.environment = {
      ...process.env,
      HOME: join(this.root, 'home'),
      XDG_RUNTIME_DIR: join(this.root, 'run'),
      XDG_STATE_HOME: join(this.root, 'state'),
      XDG_CACHE_HOME: join(this.root, 'cache'),
      // npm test must not look for a newer npm, nor keep logs of this run.
      npm_config_update_notifier: 'false',
      [TAG]: this.tag,
    };
  }

  connect(client: string): Promise<HelperClient> {
    return connect({ env: this.environment, client });
  }

  /** Ends the helper and all that it runs, and waits until it is so. */
  async shutdown(): Promise<void> {
    try {
      const client = await connect({ env: this.environment, client: 'end', start: false });
      await client.request('bough/shutdown', {});
      await client.closed;
    } catch (error) {
      if (!['E_NO_HELPER', 'E_HELPER_GONE'].includes(errorCode(error))) throw error;
    }
    await until('the processes of this run have ended', () => this.processes().length === 0).catch(() => undefined);
  }

  /** Mounts, processes, files and bytes that the run left. To be asked after `shutdown`. */
  leftovers(): Leftovers {
    const mounts = mountsBelow(this.root);
    const processes = this.processes();
    const all = this.files();
    const files = all.filter(({ path }) => !keptOnPurpose.some((pattern) => pattern.test(path)));
    const onDisk = all.reduce((sum, { blocks }) => sum + blocks * 512, 0);
    const bytes = files.reduce((sum, { size }) => sum + size, 0) + Math.max(0, onDisk - constantBytes);
    const surplus = onDisk > constantBytes ? [`${onDisk} bytes on disk`] : [];
    return {
      mounts: mounts.length,
      processes: processes.length,
      files: files.length,
      bytes,
      names: [
        ...mounts,
        ...processes.map((pid) => `process ${pid}: ${commandOf(pid)}`),
        ...files.map(({ path }) => path),
        ...surplus,
      ],
    };
  }

  /** Ends what still runs, detaches what is still mounted, removes the folder. */
  async remove(): Promise<void> {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
    for (const point of mountsBelow(this.root).reverse()) await run('umount', ['-l', point]);
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  /** Processes of this run: by the tag in their environment, or by this run's folder in environment or command. */
  private processes(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .map(Number)
      .filter((pid) => {
        const environment = contentOf(`/proc/${pid}/environ`);
        if (environment.includes(`${TAG}=${this.tag}`)) return true;
        // Inside a sandbox the environment is the branch's own; around it bubblewrap binds what lies in this run's folder.
        if (environment.includes('BOUGH_BRANCH=') && environment.includes(`HOME=${this.root}/`)) return true;
        return contentOf(`/proc/${pid}/cmdline`).includes(`${this.root}/state/`);
      });
  }

  /** Every file of the helper and of the stores. */
  private files(): FoundFile[] {
    const { state, runtime, cache } = places(this.environment);
    return [...filesBelow(runtime), ...filesBelow(state), ...filesBelow(cache)].map((file) => ({
      ...file,
      path: relative(this.root, file.path),
    }));
  }
}

interface FoundFile {
  readonly path: string;
  readonly size: number;
  /** Of 512 bytes, as stat(2) counts them. */
  readonly blocks: number;
}

/** Logs, database, and a store without branches; most of it is the log's preallocated mebibyte. */
const constantBytes = 4 * 1024 ** 2;

/**
 * A helper's own constant files: log, database, audit, the empty store, its undo history. All else is of branches (objects,
 * mount points, homes, terminals' transcripts, sockets) and must be gone with them.
 */
const keptOnPurpose: readonly RegExp[] = [
  /^state\/bough\/[^/]*$/,
  /^state\/bough\/stores\/[^/]+\/[^/]*$/,
  /^state\/bough\/stores\/[^/]+\/store\/[^/]*$/,
  // What a commit into the folder replaced, kept for undo.
  /^state\/bough\/stores\/[^/]+\/store\/commit\//,
  /^run\/bough\/helper\.lock$/,
];

function filesBelow(folder: string): FoundFile[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    const { size, blocks } = lstatSync(path);
    if (!entry.isDirectory()) return [{ path, size, blocks }];
    // A mount point or a home that is empty is still something of a branch.
    const ofBranch = /\/stores\/[^/]+\/(mounts|branches)$/.test(folder);
    return [...(ofBranch ? [{ path, size: 0, blocks }] : []), ...filesBelow(path)];
  });
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function commandOf(pid: number): string {
  return contentOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim().slice(0, 200);
}
