// One run of the command line against the helper: connects (starting it if need be), finds the folder's workspace, shows
// progress of what takes long. Used by every command that needs the helper.
import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';

import { SingleBar } from 'cli-progress';

import { BoughError, connect, type HelperClient, type Progress, type RequestName } from '../api/client.js';
import type { Branch, Requests, Workspace } from '../protocol/rpc.js';
import { pickBranch } from './pick-branch.js';

export interface SessionOptions {
  readonly json: boolean;
  /** Where the person is, or said to be. */
  readonly folder: string;
}

export class Session {
  private readonly aborter = new AbortController();

  private constructor(
    readonly client: HelperClient,
    private readonly options: SessionOptions,
  ) {}

  /** Runs the work with a connection and closes it in any case; Ctrl-C cancels what the helper is doing for it. */
  static async run<T>(options: SessionOptions, work: (session: Session) => Promise<T>): Promise<T> {
    const session = new Session(await connect({ client: 'cli' }), options);
    const onInterrupt = () => session.aborter.abort();
    process.once('SIGINT', onInterrupt);
    try {
      return await work(session);
    } finally {
      process.off('SIGINT', onInterrupt);
      session.client.close();
    }
  }

  request<M extends RequestName>(method: M, params: Requests[M][0]): Promise<Requests[M][1]> {
    const { signal } = this.aborter;
    const progress = process.stderr.isTTY && !this.options.json ? progressBar() : undefined;
    const options = progress ? { signal, onProgress: progress.show } : { signal };
    return this.client.request(method, params, options).finally(() => progress?.end());
  }

  /** The workspace that the folder is in. */
  async workspace(): Promise<Workspace> {
    const folder = await this.workspaceFolder();
    const workspace = await this.request('bough/open', { folder });
    if (workspace.problem) {
      throw new BoughError(workspace.problem.code, workspace.problem.message, {
        fix: 'See what is missing with: bough doctor',
      });
    }
    return workspace;
  }

  async branch(wanted: string | undefined): Promise<Branch> {
    const { branches } = await this.workspace();
    return pickBranch(branches, wanted);
  }

  /**
   * The folder of the workspace: a known one that holds this place (or whose branch does), else the nearest with a `.git`,
   * else this very folder.
   */
  async workspaceFolder(): Promise<string> {
    const here = realFolder(this.options.folder);
    const within = (folder: string) => here === folder || here.startsWith(folder === '/' ? folder : `${folder}/`);
    const { workspaces } = await this.request('bough/workspaces', {});
    const known = workspaces.filter(
      ({ folder, branches }) =>
        within(folder) || branches.some((branch) => branch.folder !== undefined && within(branch.folder)),
    );
    const nearest = known.sort((a, b) => b.folder.length - a.folder.length)[0];
    return nearest?.folder ?? repositoryOf(here) ?? here;
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (error) {
    throw new BoughError('E_NO_FOLDER', `${folder} cannot be opened: ${error instanceof Error ? error.message : ''}.`, {
      fix: 'Give the folder of a project with --folder.',
    });
  }
}

function repositoryOf(folder: string): string | undefined {
  for (let path = folder; ; path = dirname(path)) {
    if (existsSync(join(path, '.git'))) return path;
    if (path === dirname(path)) return undefined;
  }
}

function progressBar() {
  let bar: SingleBar | undefined;
  return {
    show: ({ kind, title, message, percentage }: Progress) => {
      if (kind === 'begin') {
        bar = new SingleBar({
          format: '{title} [{bar}] {percentage}% {message}',
          stream: process.stderr,
          hideCursor: true,
          clearOnComplete: true,
        });
        bar.start(100, percentage ?? 0, { title: title ?? '', message: message ?? '' });
      } else if (kind === 'report') {
        bar?.update(percentage ?? bar.getProgress() * 100, { message: message ?? '' });
      }
    },
    end: () => bar?.stop(),
  };
}
