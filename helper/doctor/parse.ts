// Reads what the kernel and programs say about themselves. Pure functions, used by the checks of this folder.

export interface Version {
  readonly major: number;
  readonly minor: number;
}

/** `6.1.0-18-amd64` → 6.1, `v20.11.1` → 20.11, `git version 2.39.5` → 2.39. */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(text) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

export function atLeast(version: Version, major: number, minor: number): boolean {
  return version.major > major || (version.major === major && version.minor >= minor);
}

/** A field of /proc/meminfo (proc_meminfo(5)), in bytes. */
export function parseMeminfo(text: string, field: string): number | undefined {
  const [, kibibytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}

/** The chosen one of `always [madvise] never` (/sys/kernel/mm/transparent_hugepage/enabled). */
export function parseChosen(text: string): string | undefined {
  return /\[(\w+)\]/.exec(text)?.[1];
}

/** Path of a process in the cgroup v2 hierarchy: the line `0::/…` of /proc/PID/cgroup (cgroups(7)). */
export function parseCgroupPath(text: string): string | undefined {
  return /^0::(\/.*)$/m.exec(text)?.[1];
}

/** Where cgroup v2 is mounted, by /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export function parseCgroupMount(mountinfo: string): string | undefined {
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    if (after.startsWith('cgroup2 ')) return unescapeMount(before.split(' ')[4] ?? '');
  }
  return undefined;
}

/** Mount points of /proc/self/mountinfo write blank, tab, newline and backslash in octal. */
function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Whether a process has a capability, by the mask CapEff of /proc/PID/status (capabilities(7)). */
export function hasCapability(status: string, bit: number): boolean {
  const [, mask] = /^CapEff:\s+([0-9a-f]+)$/m.exec(status) ?? [];
  return mask !== undefined && (BigInt(`0x${mask}`) & (1n << BigInt(bit))) !== 0n;
}

/** `y`, `m` or undefined for an option in a kernel's configuration. */
export function parseKernelOption(configuration: string, option: string): 'y' | 'm' | undefined {
  const [, value] = new RegExp(`^${option}=([ym])$`, 'm').exec(configuration) ?? [];
  return value === 'y' || value === 'm' ? value : undefined;
}

/** A positive whole number alone in a file of /proc/sys. */
export function parseCount(text: string): number | undefined {
  return /^\d+\s*$/.test(text) ? Number(text) : undefined;
}

export interface MachineSigns {
  /** The flag `hypervisor` of /proc/cpuinfo. */
  readonly hypervisorFlag: boolean;
  /** /sys/class/dmi/id/sys_vendor and product_name; empty where there is none. */
  readonly vendor: string;
  readonly product: string;
  /** /sys/hypervisor/type; empty where there is none. */
  readonly hypervisorType: string;
  /** What says that this is a container: a file's name or `container=` of init; empty when nothing does. */
  readonly container: string;
  readonly kernelRelease: string;
}

const vendors: readonly [RegExp, string][] = [
  [/^QEMU|KVM/i, 'KVM (QEMU)'],
  [/Amazon EC2/i, 'Amazon EC2'],
  [/Google/i, 'Google Compute Engine'],
  [/Microsoft/i, 'Hyper-V'],
  [/VMware/i, 'VMware'],
  [/innotek|VirtualBox/i, 'VirtualBox'],
  [/Parallels/i, 'Parallels'],
  [/Xen/i, 'Xen'],
  [/DigitalOcean|Hetzner|OpenStack|Alibaba/i, 'a cloud machine'],
];

/** What this machine is, in words; after systemd-detect-virt(1), which is not everywhere. */
export function kindOfMachine(signs: MachineSigns): string {
  const known = vendors.find(([name]) => name.test(`${signs.vendor} ${signs.product}`))?.[1];
  const inside = signs.container === '' ? '' : `a container (${signs.container}) on `;
  if (/microsoft/i.test(signs.kernelRelease)) return `${inside}WSL 2`;
  if (signs.hypervisorType === 'xen') return `${inside}a virtual machine of Xen`;
  if (signs.hypervisorFlag) return `${inside}a virtual machine${known === undefined ? '' : ` of ${known}`}`;
  return `${inside}bare metal`;
}

/** Types of file systems by the magic number of statfs(2); from linux/magic.h. */
const fileSystems: Readonly<Record<number, readonly [name: string, fit: 'durable' | 'volatile' | 'remote' | 'poor']>> =
  {
    0xef53: ['ext4', 'durable'],
    0x58465342: ['xfs', 'durable'],
    0x9123683e: ['btrfs', 'durable'],
    0x2fc12fc1: ['zfs', 'durable'],
    0xf2f52010: ['f2fs', 'durable'],
    0xca451a4e: ['bcachefs', 'durable'],
    0x794c7630: ['overlayfs', 'durable'],
    0x01021994: ['tmpfs', 'volatile'],
    0x858458f6: ['ramfs', 'volatile'],
    0x6969: ['NFS', 'remote'],
    0xfe534d42: ['SMB', 'remote'],
    0xff534d42: ['CIFS', 'remote'],
    0x01021997: ['9p', 'remote'],
    0x65735546: ['FUSE', 'remote'],
    0x4d44: ['FAT', 'poor'],
    0x2011bab0: ['exFAT', 'poor'],
  };

export type FileSystemFit = 'durable' | 'volatile' | 'remote' | 'poor' | 'unknown';

/** @param type `type` of Node's statfs; signed on some machines */
export function fileSystemOf(type: number): { readonly name: string; readonly fit: FileSystemFit } {
  const [name, fit] = fileSystems[type >>> 0] ?? [`type 0x${(type >>> 0).toString(16)}`, 'unknown' as const];
  return { name, fit };
}

/** `1536` → `1.5 KiB`. */
export function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`;
}
