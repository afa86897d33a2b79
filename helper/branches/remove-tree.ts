// Removes a folder and everything in it, also what its owner made read-only. Never crosses into a mount: a mount point is not
// empty and stays. Used when a branch goes.
import { chmod, lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../protocol/failure.js';

/** @param options.onlyEmpty for mount points: what is in there is not ours */
export async function removeTree(path: string, options: { readonly onlyEmpty?: boolean } = {}): Promise<boolean> {
  try {
    if (options.onlyEmpty === true) await rmdir(path);
    else await rm(path, { recursive: true, force: true });
    return true;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT') return true;
    if (options.onlyEmpty === true || (code !== 'EACCES' && code !== 'EPERM')) return false;
  }
  // Go's module cache and the like are read-only folders: a person may remove them only after opening them.
  await open(path);
  return rm(path, { recursive: true, force: true }).then(
    () => true,
    () => false,
  );
}

async function open(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return;
    await chmod(path, 0o700);
    for (const name of await readdir(path)) await open(join(path, name));
  } catch {
    // What cannot be opened is reported by the removal that follows.
  }
}
