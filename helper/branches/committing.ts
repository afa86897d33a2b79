// Commit, undo and rebase: the branch's programs stand still meanwhile, texts are merged, git commits if asked, and what lost its
// group stops. Used by service.ts.
import type { Change, CommitResult, WirePath } from '../protocol/boughfs.js';
import { BoughError, errorCode } from '../protocol/failure.js';
import type { Requests } from '../protocol/rpc.js';
import { commitToGit, requireRepository } from './git-commit.js';
import { withMerges } from './merging.js';
import type { OpenWorkspace } from './workspace.js';

type CommitAnswer = Requests['bough/commit'][1];

export interface CommitRequest {
  readonly branch: string;
  readonly paths?: readonly WirePath[];
  readonly git?: { readonly message: string };
}

export async function commit(workspace: OpenWorkspace, request: CommitRequest): Promise<CommitAnswer> {
  const { branch, paths, git } = request;
  const info = workspace.info(branch);
  if (git !== undefined) {
    if (info.parent !== 'base') {
      throw new BoughError(
        'E_BAD_REQUEST',
        'A git commit goes with a commit to the folder itself, not to another branch.',
        {
          fix: 'Commit without git, or commit the parent branch.',
        },
      );
    }
    await requireRepository(workspace.folder);
  }
  workspace.committing.add(branch);
  workspace.changed();
  try {
    const done = await workspace.session(branch).whileFrozen(async () => {
      const committed = git === undefined ? [] : pathsOf(await allChanges(workspace, branch), paths);
      const { result, merged } = await withMerges(workspace.link, branch, () => commitOnce(workspace, branch, paths));
      // Still frozen: what the agent would write from here on belongs to no branch any more.
      if (!result.partial) await stopAll(workspace, [branch, ...result.superseded]);
      return { committed, result, merged };
    });
    workspace.deltas.clear();
    const made =
      git === undefined
        ? { commit: null, problem: null }
        : await commitToGit(workspace.folder, done.committed, git.message, info.name);
    return {
      ...done.result,
      into: workspace.id(done.result.into),
      superseded: done.result.superseded.map((id) => workspace.id(id)),
      merged: done.merged,
      gitCommit: made.commit,
      gitProblem: made.problem,
    };
  } finally {
    workspace.committing.delete(branch);
    workspace.changed();
  }
}

/** One try. If boughfs dies in it, its journal decides: what it did is asked for once it is back. */
async function commitOnce(
  workspace: OpenWorkspace,
  branch: string,
  paths: readonly WirePath[] | undefined,
): Promise<CommitResult> {
  const before = (await workspace.commits()).map(({ commit: id }) => id);
  try {
    return await workspace.link.request('branch.commit', { branch, ...(paths === undefined ? {} : { paths }) });
  } catch (error) {
    if (errorCode(error) !== 'E_BOUGHFS_GONE') throw error;
    const after = (await workspace.link.request('commit.list', {})).commits;
    const done = after.find((entry) => entry.branch === branch && !before.includes(entry.commit));
    if (!done) throw error;
    await workspace.refresh();
    const superseded = [...workspace.infos.values()].filter(
      (each) => each.state === 'superseded' && each.group !== 0 && each.group === workspace.infos.get(branch)?.group,
    );
    return {
      commit: done.commit,
      into: done.into,
      paths: done.paths,
      superseded: superseded.map(({ id }) => id),
      partial: paths !== undefined,
      notApplied: [],
      tookUs: 0,
    };
  }
}

async function stopAll(workspace: OpenWorkspace, branches: readonly string[]): Promise<void> {
  const note = 'Stopped, because its branch or a sibling was committed.';
  await Promise.all(branches.map((id) => workspace.session(id).stop(note)));
}

/** Every change of a branch, page by page. */
export async function allChanges(workspace: OpenWorkspace, branch: string, against?: string): Promise<Change[]> {
  const changes: Change[] = [];
  for (;;) {
    const page = await workspace.link.request('branch.diff', {
      branch,
      from: changes.length,
      ...(against === undefined ? {} : { against }),
    });
    changes.push(...page.changes);
    if (changes.length >= page.total || page.changes.length === 0) return changes;
  }
}

/** What a commit touches in the folder: a rename touches two places. */
function pathsOf(changes: readonly Change[], only: readonly WirePath[] | undefined): WirePath[] {
  const from = changes.flatMap((change) => (change.from === undefined ? [] : [change.from]));
  return only === undefined ? [...changes.map((change) => change.path), ...from] : [...only, ...from];
}

export async function undo(
  workspace: OpenWorkspace,
  commitId: string | undefined,
): Promise<{ readonly commit: string; readonly paths: number }> {
  const { commits } = await workspace.link.request('commit.list', {});
  const found =
    commitId === undefined ? commits.find((each) => each.undoable) : commits.find((each) => each.commit === commitId);
  if (!found) {
    const what = commitId === undefined ? 'There is no commit that can be undone' : `There is no commit ${commitId}`;
    throw new BoughError('E_NO_COMMIT', `${what} in ${workspace.folder}.`, {
      fix: 'List the commits of the workspace.',
    });
  }
  const { paths } = await workspace.link.request('commit.undo', { commit: found.commit });
  workspace.deltas.clear();
  await workspace.refresh();
  return { commit: found.commit, paths };
}

export async function rebase(
  workspace: OpenWorkspace,
  branch: string,
): Promise<{ readonly paths: number; readonly merged: readonly WirePath[] }> {
  workspace.info(branch);
  const { result, merged } = await workspace
    .session(branch)
    .whileFrozen(() => withMerges(workspace.link, branch, () => workspace.link.request('branch.rebase', { branch })));
  workspace.deltas.clear();
  await workspace.refresh();
  return { paths: result.paths, merged };
}
