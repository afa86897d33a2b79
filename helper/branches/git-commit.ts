// The optional git commit after a commit to the base: of exactly the committed paths, leaving whatever else the person has staged
// or changed alone. Used by committing.ts.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { simpleGit, type SimpleGit } from 'simple-git';
import type { WirePath } from '../protocol/boughfs.js';
import { BoughError } from '../protocol/failure.js';
import { pathKey, unquote } from '../protocol/wire-path.js';

export interface GitResult {
  readonly commit: string | null;
  readonly problem: string | null;
}

/** Identity, signing and configuration of the person; not GIT_DIR and the like of whoever started the helper. */
const passed =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|XDG_.*|GNUPGHOME|SSH_AUTH_SOCK|GIT_(AUTHOR|COMMITTER)_.*)$/;

/** The person's hooks, signing and identity apply as if they committed themselves. */
function git(folder: string): SimpleGit {
  const environment = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      passed.test(name) && value !== undefined ? [[name, value]] : [],
    ),
  );
  return simpleGit({ baseDir: folder }).env(environment);
}

/** Name and email that git would commit with in this folder; null where it has none. */
export async function gitIdentity(folder: string): Promise<{ name: string; email: string } | null> {
  try {
    // One process, because every start of an agent waits for it; the last value of a key is the one that counts.
    const text = await git(folder).raw(['config', '--null', '--get-regexp', '^user\\.(name|email)$']);
    const values = new Map(text.split('\0').map((entry) => [entry.split('\n')[0], entry.split('\n')[1] ?? '']));
    const [name, email] = [values.get('user.name') ?? '', values.get('user.email') ?? ''];
    return name === '' || email === '' ? null : { name, email };
  } catch {
    return null;
  }
}

/** Fails before anything is committed where git could not commit afterwards. */
export async function requireRepository(folder: string): Promise<void> {
  try {
    await git(folder).raw(['rev-parse', '--is-inside-work-tree']);
  } catch (cause) {
    throw new BoughError(
      'E_NO_GIT',
      `${folder} is not in a git repository, so there is nothing to commit to.`,
      { fix: 'Commit without git, or run: git init' },
      { cause },
    );
  }
}

/**
 * Commits the paths to git.
 * @param paths what the commit changed, relative to the folder; of a folder everything below it
 * @param message the person's; a trailer names the branch
 */
export async function commitToGit(
  folder: string,
  paths: readonly WirePath[],
  message: string,
  branch: string,
): Promise<GitResult> {
  const scratch = await mkdtemp(join(tmpdir(), 'bough-git-'));
  try {
    const repository = git(folder);
    const top = (await repository.raw(['rev-parse', '--show-toplevel'])).replace(/\n$/, '');
    const prefix = relative(top, folder);
    const committed = changedBy(await status(repository), paths, prefix);
    if (committed.length === 0) {
      return { commit: null, problem: 'git has nothing to commit: it ignores the paths or knows them like this.' };
    }
    const list = join(scratch, 'paths');
    await writeFile(list, Buffer.concat(committed.flatMap((path) => [path, Buffer.from([0])])));
    const only = ['--pathspec-from-file', list, '--pathspec-file-nul'];
    const atTop = git(top);
    const literal = ['--literal-pathspecs'];
    await atTop.raw([...literal, 'add', '--all', ...only]);
    await atTop.raw([
      ...literal,
      'commit',
      '--quiet',
      '--only',
      ...['--message', message, '--message', `Bough-Branch: ${oneLine(branch)}`],
      ...only,
    ]);
    return { commit: (await repository.raw(['rev-parse', 'HEAD'])).trim(), problem: null };
  } catch (error) {
    return { commit: null, problem: error instanceof Error ? error.message.trim() : String(error) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Paths, relative to the top of the work tree, that git sees as changed or untracked. Ignored ones are not among them. */
async function status(repository: SimpleGit): Promise<Buffer[]> {
  // Without -z git quotes what is unusual, so that no byte is lost on the way through a string.
  const text = await repository.raw([
    ...['-c', 'core.quotePath=true'],
    ...['status', '--porcelain=v1', '--untracked-files=all', '--no-renames', '--ignore-submodules=all'],
  ]);
  return text
    .split('\n')
    .filter((line) => line.length > 3)
    .map((line) => unquote(line.slice(3)))
    .filter((path) => path.at(-1) !== 0x2f); // a repository of its own below
}

/** Those of git's paths that are among the committed ones or below one of them. */
export function changedBy(gitPaths: readonly Buffer[], paths: readonly WirePath[], prefix: string): Buffer[] {
  const before = prefix === '' ? '' : `${Buffer.from(prefix, 'utf8').toString('latin1')}/`;
  const wanted = new Set(paths.map((path) => before + pathKey(path)));
  return gitPaths.filter((bytes) => {
    const path = bytes.toString('latin1');
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      if (wanted.has(path.slice(0, end))) return true;
    }
    return false;
  });
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
