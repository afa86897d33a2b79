// What the kernel is and allows: version, FUSE and its passthrough, inotify, huge pages, cgroups. Part of the doctor.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { findProgram, type Environment } from '../agents/find-program.js';
import { probeFuse } from '../native/addon.js';
import { fail, pass, skip, warn, type Verdict } from './check.js';
import { textOf } from './files.js';
import {
  atLeast,
  hasCapability,
  parseCgroupMount,
  parseCgroupPath,
  parseChosen,
  parseCount,
  parseKernelOption,
  parseVersion,
} from './parse.js';

const CAP_SYS_ADMIN = 21;
const WATCHES = 65_536;

export function kernelVersion(text = release()): Verdict {
  const version = parseVersion(text);
  if (!version) return fail(`Linux "${text}" has no version that can be read`, 'run Bough on Linux 5.15 or newer');
  // openat2 (5.6), pidfds (5.3) and FUSE's HANDLE_KILLPRIV_V2 (5.12) are used throughout; 5.15 is the oldest that is tested.
  if (!atLeast(version, 5, 12)) return fail(`Linux ${text}`, 'upgrade to Linux 5.15 or newer');
  if (!atLeast(version, 5, 15))
    return warn(`Linux ${text}`, 'upgrade to Linux 5.15 or newer, the oldest that is tested');
  return pass(`Linux ${text}`);
}

export function fuseDevice(): Verdict {
  const { open, errno } = probeFuse();
  if (open) return pass('/dev/fuse opens');
  if (errno === 'ENOENT' || errno === 'ENODEV') {
    return fail(
      `/dev/fuse is not there (${errno})`,
      'sudo modprobe fuse; in a container: start it with --device /dev/fuse --cap-add SYS_ADMIN',
    );
  }
  return fail(
    `/dev/fuse does not open (${errno ?? 'no reason given'})`,
    errno === 'EPERM'
      ? 'the container forbids the device: start it with --device /dev/fuse --cap-add SYS_ADMIN'
      : 'sudo chmod 666 /dev/fuse',
  );
}

/** The kernel's own configuration, where it tells. */
function kernelConfiguration(): string | undefined {
  try {
    return gunzipSync(readFileSync('/proc/config.gz')).toString('utf8');
  } catch {
    return textOf(`/boot/config-${release()}`);
  }
}

export function fusePassthrough(
  text = release(),
  status = textOf('/proc/self/status') ?? '',
  configuration = kernelConfiguration(),
): Verdict {
  const version = parseVersion(text);
  const slower = 'big files are read and written through boughfs, slower';
  if (!version || !atLeast(version, 6, 9)) {
    return warn(`Linux ${text} has no FUSE passthrough: ${slower}`, 'upgrade to Linux 6.9 or newer');
  }
  if (configuration !== undefined && parseKernelOption(configuration, 'CONFIG_FUSE_PASSTHROUGH') === undefined) {
    return warn(`this kernel was built without CONFIG_FUSE_PASSTHROUGH: ${slower}`, 'use a kernel built with it');
  }
  if (!hasCapability(status, CAP_SYS_ADMIN)) {
    return warn(`only root may use FUSE passthrough: ${slower}`, 'nothing to do unless big files matter: run as root');
  }
  return pass('the kernel has it and this user may use it');
}

export function fusermount(environment: Environment, uid = process.getuid?.() ?? 0): Verdict {
  const path = findProgram('fusermount3', environment);
  if (path !== undefined) return pass(path);
  if (uid === 0) return skip('not needed by root');
  return fail('fusermount3 is not on PATH: only root can mount without it', 'sudo apt-get install fuse3');
}

export function inotifyLimits(
  watches = parseCount(textOf('/proc/sys/fs/inotify/max_user_watches') ?? ''),
  instances = parseCount(textOf('/proc/sys/fs/inotify/max_user_instances') ?? ''),
): Verdict {
  if (watches === undefined || instances === undefined) return skip('the kernel does not tell its limits');
  const detail = `${watches} watches, ${instances} instances`;
  if (watches < WATCHES || instances < 128) {
    return warn(
      `${detail}: big folders cannot be watched, their changes are seen later`,
      'sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512',
    );
  }
  return pass(detail);
}

export function hugePages(text = textOf('/sys/kernel/mm/transparent_hugepage/enabled')): Verdict {
  const chosen = text === undefined ? undefined : parseChosen(text);
  if (chosen === undefined) return skip('this kernel has no transparent huge pages; only microVMs would use them');
  if (chosen === 'never') {
    return warn(
      'transparent huge pages are off: memory of microVMs would be slower',
      'echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled',
    );
  }
  return pass(chosen);
}

export function cgroupDelegation(
  mountinfo = textOf('/proc/self/mountinfo') ?? '',
  own = textOf('/proc/self/cgroup') ?? '',
): Verdict {
  const mount = parseCgroupMount(mountinfo);
  const path = parseCgroupPath(own);
  if (mount === undefined || path === undefined) {
    return warn(
      'cgroup v2 is not mounted: memory and processes of agents cannot be limited',
      'boot with systemd.unified_cgroup_hierarchy=1, or ignore it',
    );
  }
  const folder = join(mount, path);
  const controllers = (textOf(join(folder, 'cgroup.controllers')) ?? '').trim();
  const mayWrite = [folder, join(folder, 'cgroup.procs')].every((file) => existsSync(file) && writable(file));
  const lacking = ['memory', 'pids'].filter((name) => !controllers.split(' ').includes(name));
  if (mayWrite && lacking.length === 0) return pass(`${folder} is ours: ${controllers}`);
  return warn(
    mayWrite
      ? `${folder} is ours but lacks ${lacking.join(' and ')}: memory and processes of agents cannot be limited`
      : `${folder} belongs to somebody else: memory and processes of agents cannot be limited`,
    'start the editor by: systemd-run --user --scope -p Delegate=yes code',
  );
}

function writable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
