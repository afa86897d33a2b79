// The HOME of a branch: a folder of its own, so that an agent's settings and history belong to the branch. A first branch gets
// the agent's settings and credentials of the person, a child gets what its parent has. Used when a branch is made.
import { cp, lstat, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';

/** Of an agent's folder these are the history of other tasks, or can be made again; they stay with the person. */
const leftOut = new Set([
  'projects',
  'sessions',
  'archived_sessions',
  'history.jsonl',
  'history',
  'shell-snapshots',
  'file-history',
  'todos',
  'debug',
  'tmp',
  'log',
  'logs',
  'cache',
]);
/** Of a parent's HOME: what package managers can fetch again. */
const caches = new Set(['.cache', '.npm']);

export interface GitIdentity {
  readonly name: string;
  readonly email: string;
}

/** A HOME for a branch of the base. */
export async function makeHome(
  home: string,
  person: string,
  agentState: readonly string[],
  folder: string,
  git: GitIdentity | null,
): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  for (const name of agentState) {
    const from = join(person, name);
    if (!(await exists(from))) continue;
    await mkdir(dirname(join(home, name)), { recursive: true, mode: 0o700 });
    await copy(from, join(home, name), (path) => !leftOut.has(relative(from, path).split(sep)[0] ?? ''));
  }
  await writeFile(join(home, '.gitconfig'), gitConfig(folder, git), { mode: 0o600 });
}

/** A HOME for a child: the parent's as it is now. */
export async function copyHome(home: string, parent: string): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  if (!(await exists(parent))) return;
  await copy(parent, home, (path) => !caches.has(relative(parent, path).split(sep)[0] ?? ''));
}

/** Whether an agent left something in this HOME that its next run can go on with. */
export async function hasState(home: string, agentState: readonly string[]): Promise<boolean> {
  for (const name of agentState) if (await exists(join(home, name))) return true;
  return false;
}

/** Values are quoted: a name may hold `#`, `;` or a quote. */
export function gitConfig(folder: string, git: GitIdentity | null): string {
  const quote = (value: string) =>
    `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;
  const identity = git === null ? '' : `[user]\n\tname = ${quote(git.name)}\n\temail = ${quote(git.email)}\n`;
  return `${identity}[safe]\n\tdirectory = ${quote(folder)}\n`;
}

async function copy(from: string, to: string, filter: (path: string) => boolean): Promise<void> {
  await cp(from, to, {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    // Sockets and fifos belong to a running program and cannot be copied; a file that goes away meanwhile is no loss.
    filter: async (path) => filter(path) && (await isPlain(path)),
    errorOnExist: false,
    force: true,
  });
}

async function isPlain(path: string): Promise<boolean> {
  try {
    const found = await lstat(path);
    return found.isFile() || found.isDirectory() || found.isSymbolicLink();
  } catch {
    return false;
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
