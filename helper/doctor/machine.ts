// What isolates an agent and what this machine is: bubblewrap, user namespaces, KVM, kind of virtualization, memory. Part of
// the doctor.
import { existsSync } from 'node:fs';
import { release } from 'node:os';

import { findProgram, type Environment } from '../agents/find-program.js';
import { probeKvm, type KvmProbe } from '../native/addon.js';
import { fail, pass, skip, warn, type Verdict } from './check.js';
import { run, textOf } from './files.js';
import { bytes, kindOfMachine, parseCount, parseMeminfo, type MachineSigns } from './parse.js';

const MEMORY = 512 * 1024 * 1024;

const namespaceFix =
  'sudo sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=15000 ' +
  '(each where it exists); in a container: start it with --privileged or --security-opt seccomp=unconfined';

/** Runs `true` the way a branch runs its agent. */
export async function bubblewrap(environment: Environment, uid = process.getuid?.() ?? 0): Promise<Verdict> {
  const program = findProgram('bwrap', environment);
  if (program === undefined) return fail('bwrap is not on PATH', 'sudo apt-get install bubblewrap');
  const version = (await run(program, ['--version'], { ...environment })).stdout.trim();
  const namespaces = ['--unshare-pid', '--unshare-ipc', '--unshare-uts', ...(uid === 0 ? [] : ['--unshare-user'])];
  const view = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'];
  const { status, stderr } = await run(program, [...namespaces, ...view, '--', 'true'], { ...environment });
  if (status === 0) return pass(`${version} runs a program`);
  const said = stderr.trim().split('\n').at(-1) ?? '';
  return fail(`${version} does not run a program: ${said}`, namespaceFix);
}

export interface NamespaceLimits {
  /** user.max_user_namespaces */
  readonly most: number | undefined;
  /** kernel.unprivileged_userns_clone (Debian) */
  readonly debian: number | undefined;
  /** kernel.apparmor_restrict_unprivileged_userns (Ubuntu) */
  readonly appArmor: number | undefined;
}

function namespaceLimits(): NamespaceLimits {
  const count = (path: string) => parseCount(textOf(`/proc/sys/${path}`) ?? '');
  return {
    most: count('user/max_user_namespaces'),
    debian: count('kernel/unprivileged_userns_clone'),
    appArmor: count('kernel/apparmor_restrict_unprivileged_userns'),
  };
}

export function userNamespaces(uid = process.getuid?.() ?? 0, limits = namespaceLimits()): Verdict {
  if (!(limits.most ?? 0)) {
    const detail = 'user namespaces are switched off (user.max_user_namespaces)';
    return uid === 0 ? warn(detail, namespaceFix) : fail(detail, namespaceFix);
  }
  if (uid === 0) return pass('allowed; root does not need them');
  if (limits.debian === 0) return fail('kernel.unprivileged_userns_clone is 0', namespaceFix);
  // Ubuntu lets programs with a profile pass, and bubblewrap may have one: the check `bubblewrap` decides.
  if (limits.appArmor === 1) return warn('AppArmor restricts them: see the check of bubblewrap', namespaceFix);
  return pass('allowed for this user');
}

export function kvm(probe: () => KvmProbe = probeKvm): Verdict {
  const { open, vcpuRuns, apiVersion, error } = probe();
  if (vcpuRuns) return pass(`a virtual CPU ran (API ${apiVersion ?? '?'})`);
  const without = 'no microVMs here, process isolation works without';
  if (!open) {
    return warn(
      `/dev/kvm does not open (${error ?? 'no reason given'}): ${without}`,
      'switch virtualization on in the firmware or the cloud machine, then: sudo modprobe kvm-intel || sudo modprobe kvm-amd; ' +
        'sudo usermod -aG kvm "$USER"',
    );
  }
  return warn(
    `/dev/kvm opens but no virtual CPU ran (${error ?? 'no reason given'}): ${without}`,
    'allow nested virtualization',
  );
}

function signsOfThisMachine(): MachineSigns {
  const trimmed = (path: string) => (textOf(path) ?? '').trim();
  const files = ['/.dockerenv', '/run/.containerenv'].filter((path) => existsSync(path));
  const named = /(?:^|\0)container=([^\0]*)/.exec(textOf('/proc/1/environ') ?? '')?.[1];
  return {
    hypervisorFlag: /^flags\s*:.*\bhypervisor\b/m.test(textOf('/proc/cpuinfo') ?? ''),
    vendor: trimmed('/sys/class/dmi/id/sys_vendor'),
    product: trimmed('/sys/class/dmi/id/product_name'),
    hypervisorType: trimmed('/sys/hypervisor/type'),
    container: named ?? files[0] ?? '',
    kernelRelease: release(),
  };
}

export function virtualization(signs = signsOfThisMachine()): Verdict {
  return pass(kindOfMachine(signs));
}

export function memory(meminfo = textOf('/proc/meminfo') ?? ''): Verdict {
  const available = parseMeminfo(meminfo, 'MemAvailable');
  const all = parseMeminfo(meminfo, 'MemTotal');
  if (available === undefined || all === undefined) return skip('the kernel does not tell');
  const detail = `${bytes(available)} of ${bytes(all)} available`;
  if (available < MEMORY) return warn(detail, 'close what needs memory, or run fewer branches at once');
  return pass(detail);
}
