import { describe, expect, it } from 'vitest';

import {
  atLeast,
  bytes,
  fileSystemOf,
  hasCapability,
  kindOfMachine,
  parseCgroupMount,
  parseCgroupPath,
  parseChosen,
  parseCount,
  parseKernelOption,
  parseMeminfo,
  parseVersion,
  type MachineSigns,
} from './parse.js';

describe('versions', () => {
  it.each([
    ['6.1.0-18-amd64', 6, 1],
    ['5.15.167.4-microsoft-standard-WSL2', 5, 15],
    ['v20.11.1', 20, 11],
    ['git version 2.39.5', 2, 39],
    ['bubblewrap 0.8.0', 0, 8],
  ])('%s', (text, major, minor) => {
    expect(parseVersion(text)).toEqual({ major, minor });
  });

  it('are compared by number, not by text', () => {
    expect(atLeast({ major: 6, minor: 10 }, 6, 9)).toBe(true);
    expect(atLeast({ major: 5, minor: 19 }, 6, 9)).toBe(false);
    expect(atLeast({ major: 10, minor: 0 }, 9, 9)).toBe(true);
    expect(atLeast({ major: 6, minor: 9 }, 6, 9)).toBe(true);
    expect(parseVersion('no version')).toBeUndefined();
  });
});

describe('/proc', () => {
  it('tells memory in bytes', () => {
    const text = 'MemTotal:       24684196 kB\nMemFree:          100 kB\nMemAvailable:    2048 kB\n';
    expect(parseMeminfo(text, 'MemAvailable')).toBe(2048 * 1024);
    expect(parseMeminfo(text, 'Mem')).toBeUndefined();
  });

  it('tells the path in cgroup v2 and not in v1', () => {
    expect(parseCgroupPath('4:memory:/a\n0::/user.slice/app.scope\n')).toBe('/user.slice/app.scope');
    expect(parseCgroupPath('4:memory:/a\n')).toBeUndefined();
  });

  it('tells where cgroup v2 is mounted, also with optional fields and blanks', () => {
    const v1 = '30 24 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory';
    const v2 = '31 24 0:26 / /sys/fs/my\\040cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate';
    expect(parseCgroupMount(`${v1}\n${v2}\n`)).toBe('/sys/fs/my cgroup');
    expect(parseCgroupMount(v1)).toBeUndefined();
  });

  it('tells capabilities by bit', () => {
    expect(hasCapability('Name:\tx\nCapEff:\t000001ffffffffff\n', 21)).toBe(true);
    expect(hasCapability('CapEff:\t0000000000200000\n', 21)).toBe(true);
    expect(hasCapability('CapEff:\t0000000000100000\n', 21)).toBe(false);
    expect(hasCapability('CapPrm:\t0000000000200000\n', 21)).toBe(false);
  });

  it('tells counts only when they are counts', () => {
    expect(parseCount('65536\n')).toBe(65536);
    expect(parseCount('')).toBeUndefined();
    expect(parseCount('-1\n')).toBeUndefined();
  });
});

it('the chosen kind of huge pages', () => {
  expect(parseChosen('always [madvise] never\n')).toBe('madvise');
  expect(parseChosen('')).toBeUndefined();
});

it('options of a kernel', () => {
  const text = '# CONFIG_FUSE_PASSTHROUGH is not set\nCONFIG_FUSE_FS=m\nCONFIG_VIRTIO_FS=y\nCONFIG_HZ=250\n';
  expect(parseKernelOption(text, 'CONFIG_FUSE_PASSTHROUGH')).toBeUndefined();
  expect(parseKernelOption(text, 'CONFIG_FUSE_FS')).toBe('m');
  expect(parseKernelOption(text, 'CONFIG_VIRTIO_FS')).toBe('y');
  expect(parseKernelOption(text, 'CONFIG_HZ')).toBeUndefined();
});

describe('kind of machine', () => {
  const bare: MachineSigns = {
    hypervisorFlag: false,
    vendor: 'Some Maker',
    product: 'Laptop',
    hypervisorType: '',
    container: '',
    kernelRelease: '6.1.0-18-amd64',
  };

  it.each([
    ['bare metal', {}],
    ['a virtual machine of KVM (QEMU)', { hypervisorFlag: true, vendor: 'QEMU' }],
    ['a virtual machine of Amazon EC2', { hypervisorFlag: true, vendor: 'Amazon EC2', product: 'm5.large' }],
    ['a virtual machine', { hypervisorFlag: true, vendor: '', product: '' }],
    ['bare metal', { vendor: 'Amazon EC2', product: 'm5.metal' }],
    ['a virtual machine of Xen', { hypervisorType: 'xen' }],
    ['WSL 2', { hypervisorFlag: true, kernelRelease: '5.15.167.4-microsoft-standard-WSL2' }],
    ['a container (docker) on bare metal', { container: 'docker' }],
    ['a container (/.dockerenv) on a virtual machine', { container: '/.dockerenv', hypervisorFlag: true }],
  ])('%s', (kind, signs) => {
    expect(kindOfMachine({ ...bare, ...signs })).toBe(kind);
  });
});

it('file systems by their magic number, also as a negative one', () => {
  expect(fileSystemOf(0xef53)).toEqual({ name: 'ext4', fit: 'durable' });
  expect(fileSystemOf(0x01021994)).toEqual({ name: 'tmpfs', fit: 'volatile' });
  expect(fileSystemOf(0x9123683e | 0)).toEqual({ name: 'btrfs', fit: 'durable' });
  expect(fileSystemOf(0x6969)).toEqual({ name: 'NFS', fit: 'remote' });
  expect(fileSystemOf(0x1234)).toEqual({ name: 'type 0x1234', fit: 'unknown' });
});

it('sizes as people read them', () => {
  expect([0, 1023, 1536, 5 * 1024 ** 3, 300 * 1024 ** 2].map(bytes)).toEqual([
    '0 bytes',
    '1023 bytes',
    '1.5 KiB',
    '5.0 GiB',
    '300 MiB',
  ]);
});
