// What of the host a program in a branch may read: the system's folders, the tool chain of the person, and nothing that only
// root or the person may read. Used by bubblewrap.ts. Reads the host's folders, starts nothing.
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, type Dirent } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';

export type Bind =
  | { readonly kind: 'read-only'; readonly path: string }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string };

export interface Mask {
  readonly path: string;
  readonly directory: boolean;
}

/** /usr and /etc are the system; /opt is where vendors put theirs. Links stay links. */
export function systemBinds(root = '/'): Bind[] {
  const names = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32', 'etc', 'opt'];
  return names.flatMap((name): Bind[] => {
    const path = join(root, name);
    try {
      const found = lstatSync(path);
      if (found.isSymbolicLink()) return [{ kind: 'symlink', path, target: readlinkSync(path) }];
      return found.isDirectory() ? [{ kind: 'read-only', path }] : [];
    } catch {
      return [];
    }
  });
}

/** Whether `path` is `folder` or lies below it; both absolute. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/**
 * What below a folder is not for everyone: it stays hidden also when Bough runs as root, whom no permission stops. Of /etc these
 * are shadow, private keys, passwords of databases.
 */
export function privateEntries(folder: string): Mask[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry): Mask[] => {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) return [];
    let mode: number;
    try {
      mode = lstatSync(path).mode;
    } catch {
      return [];
    }
    if (entry.isDirectory()) {
      return (mode & 0o005) === 0o005 ? privateEntries(path) : [{ path, directory: true }];
    }
    return (mode & 0o004) !== 0 ? [] : [{ path, directory: false }];
  });
}

/** Folders of version managers: their programs on PATH are only doors to what lies there. */
const toolFolders: readonly { readonly door: string; readonly behind: readonly string[] }[] = [
  { door: '.nvm', behind: ['.nvm'] },
  { door: '.volta', behind: ['.volta'] },
  { door: '.asdf', behind: ['.asdf'] },
  { door: '.fnm', behind: ['.fnm'] },
  { door: '.local/share/fnm', behind: ['.local/share/fnm'] },
  { door: '.local/share/mise', behind: ['.local/share/mise'] },
  { door: '.pyenv', behind: ['.pyenv'] },
  { door: '.rbenv', behind: ['.rbenv'] },
  // Not all of .cargo: its credentials are there.
  { door: '.cargo/bin', behind: ['.cargo/bin', '.rustup/toolchains', '.rustup/settings.toml'] },
  { door: '.bun/bin', behind: ['.bun/bin'] },
  { door: '.deno/bin', behind: ['.deno/bin'] },
  { door: '.local/bin', behind: ['.local/bin', '.local/share/claude', '.local/share/uv', '.local/share/pipx'] },
];

/**
 * Host paths outside the system's folders that the programs on PATH need: the folders of PATH themselves, the modules beside a
 * Node installation, and what version managers keep in HOME. Never HOME itself or a folder above it.
 */
export function toolChain(environment: Readonly<Record<string, string | undefined>>, home: string): string[] {
  const found = new Set<string>();
  const add = (path: string) => {
    if (path !== '/' && !isWithin(home, path) && existsSync(path)) found.add(path);
  };
  const searched = (environment['PATH'] ?? '').split(':').filter((path) => isAbsolute(path));
  for (const path of searched.map((each) => resolve(each))) {
    const real = realpath(path);
    if (real === null) continue;
    for (const folder of new Set([path, real])) {
      add(folder);
      const managed = toolFolders.filter(({ door }) => isWithin(folder, join(home, door)));
      for (const { behind } of managed) for (const name of behind) add(join(home, name));
      if (existsSync(join(folder, 'node'))) add(join(dirname(folder), 'lib', 'node_modules'));
    }
  }
  const system = systemBinds().map(({ path }) => path);
  const outside = [...found].filter((path) => !system.some((folder) => isWithin(path, folder)));
  // What lies below another one comes with it.
  return outside.filter((path) => !outside.some((other) => other !== path && isWithin(path, other))).sort();
}

function realpath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
