// Where Bough keeps its sockets and state, the room there, and the folder to work in. Part of the doctor.
import { accessSync, constants, existsSync, mkdirSync, statfsSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { fail, pass, warn, type Verdict } from './check.js';
import { bytes, fileSystemOf } from './parse.js';

/** A store's socket is at most as long as `fs-` with 16 digits; sun_path holds 107 bytes and a NUL (unix(7)). */
const longestSocketName = '/fs-0123456789abcdef.sock';
const SUN_PATH = 107;
const ROOM_WARN = 1024 ** 3;
const ROOM_FAIL = 64 * 1024 ** 2;

export function socketFolder(folder: string, uid = process.getuid?.() ?? 0): Verdict {
  if (Buffer.byteLength(folder + longestSocketName) > SUN_PATH) {
    return fail(`${folder} is too long for the path of a socket`, 'set XDG_RUNTIME_DIR to a shorter folder');
  }
  if (!existsSync(folder)) {
    const above = nearest(folder);
    if (mayWrite(above)) return pass(`${folder} will be made`);
    return fail(`${folder} cannot be made: ${above} is not writable`, 'set XDG_RUNTIME_DIR to a folder of your own');
  }
  const found = statSync(folder);
  if (!found.isDirectory() || found.uid !== uid) {
    return fail(
      `${folder} is not a folder of this user`,
      `remove ${folder}, or set XDG_RUNTIME_DIR to a folder of your own`,
    );
  }
  const mode = (found.mode & 0o777).toString(8);
  if ((found.mode & 0o077) !== 0) return fail(`others may enter ${folder} (mode ${mode})`, `chmod 700 ${folder}`);
  return pass(`${folder} (mode ${mode})`);
}

/** Writes and removes a file there, and looks at what kind of file system it is. */
export function stateFolder(folder: string): Verdict {
  const elsewhere = 'set XDG_STATE_HOME to a folder on a local disk (ext4, xfs, btrfs)';
  const probe = join(folder, `.doctor-${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(probe, 'x', { flag: 'wx' });
    unlinkSync(probe);
  } catch (error) {
    return fail(`${folder} cannot be written: ${error instanceof Error ? error.message : String(error)}`, elsewhere);
  }
  const { name, fit } = fileSystemOf(statfsSync(folder).type);
  const detail = `${folder} is writable (${name})`;
  if (fit === 'poor') return fail(`${detail}, which cannot keep modes and links`, elsewhere);
  if (fit === 'volatile') return warn(`${detail}: branches are lost when this machine restarts`, elsewhere);
  if (fit === 'remote') return warn(`${detail}: slow, and not sure to keep what was synced`, elsewhere);
  return pass(detail);
}

export function room(folder: string): Verdict {
  const { bavail, bsize, ffree, files } = statfsSync(nearest(folder));
  return roomVerdict(bavail * bsize, files === 0 ? undefined : ffree);
}

/** @param inodes that are free; undefined where the file system makes them as needed */
export function roomVerdict(free: number, inodes: number | undefined): Verdict {
  const detail = `${bytes(free)} free`;
  const fix = 'make room, or set XDG_STATE_HOME to a folder on a bigger disk; bough gc removes what crashed runs left';
  if (free < ROOM_FAIL) return fail(detail, fix);
  if (free < ROOM_WARN) return warn(detail, fix);
  if (inodes !== undefined && inodes < 10_000) return warn(`${detail}, but only ${inodes} more files`, fix);
  return pass(detail);
}

export function workFolder(folder: string, state: string): Verdict {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    return fail(`${folder} is not a folder`, 'give the folder of a project');
  }
  if (folder === state || folder.startsWith(`${state}/`)) {
    return fail(`${folder} is inside of Bough's own state`, 'open the real folder of the project, not a branch');
  }
  if (!mayWrite(folder))
    return warn(`${folder} is not writable: nothing can be committed to it`, `chmod u+w ${folder}`);
  return pass(`${folder} (${fileSystemOf(statfsSync(folder).type).name})`);
}

/** The folder itself, or the nearest above it that exists. */
function nearest(folder: string): string {
  let path = folder;
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path);
  return path;
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
