// What Node cannot do by itself: peer credentials of a socket, pidfds, renameat2, FICLONE, ptys, and the doctor's probes.
// The typed face of build/release/bough.node (sources in native/addon). Used by the helper's services and the doctor.
//
// Errors are shaped like Node's own: `code` ('ENOENT'), `errno` (negative), `syscall`, and `path` where there is one.
// A descriptor that a function returns belongs to the caller: close it with fs.closeSync.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

export interface Pty {
  /** Descriptor of the master side, close-on-exec. */
  readonly master: number;
  /** Path of the slave side, such as `/dev/pts/3`. */
  readonly slave: string;
}

export interface KvmProbe {
  /** Whether /dev/kvm could be opened. */
  readonly open: boolean;
  /** What KVM_GET_API_VERSION says; null where it could not be asked. */
  readonly apiVersion: number | null;
  /** Whether a vCPU really ran a HLT. */
  readonly vcpuRuns: boolean;
  /** The step that failed and its errno; null when the vCPU ran. */
  readonly error: string | null;
}

export interface FuseProbe {
  readonly open: boolean;
  /** Name of the errno, such as 'EACCES'; null when it opened. */
  readonly errno: string | null;
}

interface Addon {
  peerCredentials(fd: number): PeerCredentials;
  pidfdOpen(pid: number): number;
  pidfdSendSignal(pidfd: number, signal: number): void;
  renameExchange(a: string, b: string): void;
  renameNoReplace(from: string, to: string): void;
  ficlone(source: string, target: string): boolean;
  openPty(rows: number, columns: number): Pty;
  resizePty(master: number, rows: number, columns: number): void;
  probeKvm(): KvmProbe;
  probeFuse(): FuseProbe;
}

/** bough.node is not where it should be, or does not load. */
export class AddonError extends Error {
  override readonly name = 'AddonError';
  readonly code = 'BOUGH_ADDON_MISSING';
}

/** Places of bough.node, nearest first: beside the bundle, the build of a checkout seen from dist/ and from helper/native/. */
export function addonCandidates(moduleFile = fileURLToPath(import.meta.url)): string[] {
  const here = dirname(moduleFile);
  return [
    join(here, 'bough.node'),
    join(here, '..', 'build', 'release', 'bough.node'),
    join(here, '..', '..', 'build', 'release', 'bough.node'),
  ];
}

let loaded: Addon | undefined;

function addon(): Addon {
  if (loaded) return loaded;
  const candidates = addonCandidates();
  const file = candidates.find((path) => existsSync(path));
  if (file === undefined) {
    throw new AddonError(
      `The native module bough.node was not found (looked at ${candidates.join(', ')}). Build it with: npm run build`,
    );
  }
  try {
    loaded = createRequire(import.meta.url)(file) as Addon;
  } catch (cause) {
    throw new AddonError(
      `The native module ${file} does not load on this machine. Build it again with: npm run build`,
      { cause },
    );
  }
  return loaded;
}

function integer(value: number, name: string, least: number, most = 0x7fffffff): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`${name} must be an integer from ${least} to ${most}, not ${value}`);
  }
  return value;
}

/** A path that C can take whole: a NUL byte would end it early. */
function path(value: string, name: string): string {
  if (value === '' || value.includes('\0')) throw new RangeError(`${name} must be a path without NUL bytes`);
  return value;
}

/** Process, user and group at the other end of a unix socket (unix(7), SO_PEERCRED). */
export function peerCredentials(socket: Socket | number): PeerCredentials {
  return addon().peerCredentials(integer(typeof socket === 'number' ? socket : descriptorOf(socket), 'fd', 0));
}

/** Node keeps a socket's descriptor in its handle and offers no public way to it. */
function descriptorOf(socket: Socket): number {
  const handle = (socket as unknown as { _handle?: { fd?: number } | null })._handle;
  if (typeof handle?.fd !== 'number' || handle.fd < 0) {
    throw Object.assign(new Error('EBADF: the socket is not open, peerCredentials'), { code: 'EBADF' });
  }
  return handle.fd;
}

/** Descriptor of a process; ESRCH when there is none (pidfd_open(2)). */
export function pidfdOpen(pid: number): number {
  return addon().pidfdOpen(integer(pid, 'pid', 1));
}

/** Sends a signal by number to the process behind a pidfd; 0 only asks (pidfd_send_signal(2)). */
export function pidfdSendSignal(pidfd: number, signal: number): void {
  addon().pidfdSendSignal(integer(pidfd, 'pidfd', 0), integer(signal, 'signal', 0, 64));
}

/** Swaps two paths in one step (renameat2(2), RENAME_EXCHANGE). */
export function renameExchange(a: string, b: string): void {
  addon().renameExchange(path(a, 'a'), path(b, 'b'));
}

/** Renames, or fails with EEXIST where the target is there already (renameat2(2), RENAME_NOREPLACE). */
export function renameNoReplace(from: string, to: string): void {
  addon().renameNoReplace(path(from, 'from'), path(to, 'to'));
}

/** Makes `target` (which must not exist) a reflink of `source`; false where the file system has none (ioctl_ficlone(2)). */
export function ficlone(source: string, target: string): boolean {
  return addon().ficlone(path(source, 'source'), path(target, 'target'));
}

/** A new pseudoterminal (pty(7)). */
export function openPty(rows: number, columns: number): Pty {
  return addon().openPty(integer(rows, 'rows', 1, 0xffff), integer(columns, 'columns', 1, 0xffff));
}

/** Tells the programs on a pty its new size (TIOCSWINSZ). */
export function resizePty(master: number, rows: number, columns: number): void {
  addon().resizePty(
    integer(master, 'master', 0),
    integer(rows, 'rows', 1, 0xffff),
    integer(columns, 'columns', 1, 0xffff),
  );
}

/** Runs one instruction in a KVM guest. Blocks for at most five seconds, a few milliseconds as a rule. */
export function probeKvm(): KvmProbe {
  return addon().probeKvm();
}

/** Whether /dev/fuse can be opened. */
export function probeFuse(): FuseProbe {
  return addon().probeFuse();
}
