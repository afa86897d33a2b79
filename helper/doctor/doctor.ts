// Looks at everything Bough needs and says for each whether it is there and what to do if not. Used by the daemon
// (`bough/doctor`), the command line and, before a helper can start at all, by the command line alone.
import { realpathSync } from 'node:fs';

import type { Environment } from '../agents/find-program.js';
import type { DoctorCheck } from '../protocol/rpc.js';
import { places } from '../state/places.js';
import { answer, type Question } from './check.js';
import {
  cgroupDelegation,
  fuseDevice,
  fusePassthrough,
  fusermount,
  hugePages,
  inotifyLimits,
  kernelVersion,
} from './kernel.js';
import { bubblewrap, kvm, memory, userNamespaces, virtualization } from './machine.js';
import { room, socketFolder, stateFolder, workFolder } from './places.js';
import { addon, boughfs, git, guestKernel, node } from './programs.js';

export interface DoctorOptions {
  /** The person's folder; left out: what concerns it is not asked. */
  readonly folder?: string;
  readonly environment?: Environment;
}

export interface DoctorReport {
  /** Nothing failed; warnings may be there. */
  readonly ok: boolean;
  readonly checks: readonly DoctorCheck[];
}

export async function runDoctor(options: DoctorOptions = {}): Promise<DoctorReport> {
  const checks: DoctorCheck[] = [];
  // One after the other: some look at the same devices, and the whole takes well under a second.
  for (const question of questions(options)) checks.push(await answer(question));
  return { ok: checks.every(({ status }) => status !== 'fail'), checks };
}

function questions({ folder, environment = process.env }: DoctorOptions): Question[] {
  const at = places({ ...environment });
  const asked: Question[] = [
    { id: 'kernel', title: 'Linux kernel', ask: () => kernelVersion() },
    { id: 'fuse', title: 'FUSE device', ask: () => fuseDevice() },
    { id: 'fuse-passthrough', title: 'FUSE passthrough', ask: () => fusePassthrough() },
    { id: 'fusermount3', title: 'fusermount3', ask: () => fusermount(environment) },
    { id: 'bubblewrap', title: 'bubblewrap', ask: () => bubblewrap(environment) },
    { id: 'user-namespaces', title: 'User namespaces', ask: () => userNamespaces() },
    { id: 'cgroup', title: 'cgroup v2', ask: () => cgroupDelegation() },
    { id: 'inotify', title: 'inotify limits', ask: () => inotifyLimits() },
    { id: 'disk', title: 'Disk', ask: () => room(at.state) },
    { id: 'memory', title: 'Memory', ask: () => memory() },
    { id: 'huge-pages', title: 'Huge pages', ask: () => hugePages() },
    { id: 'kvm', title: 'KVM', ask: () => kvm() },
    { id: 'virtualization', title: 'Machine', ask: () => virtualization() },
    { id: 'git', title: 'git', ask: () => git(environment) },
    { id: 'node', title: 'Node.js', ask: () => node() },
    { id: 'socket-folder', title: 'Socket folder', ask: () => socketFolder(at.runtime) },
    { id: 'state-folder', title: 'State folder', ask: () => stateFolder(at.state) },
    { id: 'boughfs', title: 'boughfs', ask: () => boughfs(environment) },
    { id: 'addon', title: 'Native module', ask: () => addon() },
    { id: 'guest-kernel', title: 'Guest kernel', ask: () => guestKernel() },
  ];
  if (folder !== undefined) {
    asked.push({ id: 'folder', title: 'This folder', ask: () => workFolder(realPath(folder), at.state) });
  }
  return asked;
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}
