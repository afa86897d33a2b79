// How a machine comes up: mounts, loopback, names; and how it goes down.
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import type { Suite } from '../cli/suite.js';
import { until } from '../harness.js';
import { shell, where } from './programs.js';
import { World } from './world.js';

export async function bootTests(suite: Suite): Promise<void> {
  await suite.test('comes up with its file systems, loopback and host name, and says so', async () => {
    const world = await World.start('quiet bough.hostname=tree');
    try {
      const { guest } = world.host();
      const hello = await guest.hello();
      equal(hello.hostname, 'tree');
      equal(hello.root, 'initramfs');
      deepEqual(hello.problems, []);
      deepEqual(hello.frozen, []);
      match(hello.bootId, /^[0-9a-f-]{36}$/);
      for (const [path, type] of [
        ['/proc', 'proc'],
        ['/sys', 'sysfs'],
        ['/sys/fs/cgroup', 'cgroup2fs'],
        ['/dev/pts', 'devpts'],
        ['/dev/shm', 'tmpfs'],
        ['/run', 'tmpfs'],
        ['/tmp', 'tmpfs'],
      ]) {
        equal((await shell(guest, `stat -f -c %T ${path}`)).trim(), type, path);
      }
      match(await shell(guest, 'ip -o link show lo 2>/dev/null || cat /sys/class/net/lo/flags'), /UP|0x9/);
      equal((await shell(guest, 'hostname')).trim(), 'tree');
      equal((await shell(guest, 'cat /proc/1/comm')).trim(), 'bough-init');
      equal((await shell(guest, 'stat -c %a /tmp')).trim(), '1777');
    } finally {
      await world.stop();
    }
  });

  await suite.test(
    'a word that means nothing is told on the console and in hello, and it comes up all the same',
    async () => {
      const world = await World.start('bough.root=ext4:sda bough.workspace=/w:none');
      try {
        const { problems, root, workspaces } = await world.host().guest.hello();
        equal(root, 'initramfs');
        deepEqual(workspaces, []);
        deepEqual(
          problems.map(({ code }) => code),
          ['E_BAD_REQUEST', 'E_MOUNT'],
        );
        match(world.console, /E_BAD_REQUEST: .*bough\.root=ext4:sda/);
        match(world.console, /E_MOUNT: .*\/w/);
      } finally {
        await world.stop();
      }
    },
  );

  await suite.test('shutdown: programs get SIGTERM, who ignores it SIGKILL, then the machine is reset', async () => {
    const world = await World.start();
    try {
      const { guest } = world.host();
      let said = '';
      const polite = await guest.exec({
        ...where,
        argv: ['sh', '-c', 'trap "echo bye; exit 7" TERM; echo on; while :; do sleep 0.05; done'],
        // What the shell says of its sleep, which got the signal as well, is on the other stream.
        onOutput: ({ stream, data }) => void (said += stream === 'stdout' ? data.toString() : ''),
      });
      let stubborn = '';
      await guest.exec({
        ...where,
        argv: ['sh', '-c', 'trap "" TERM; echo on; while :; do sleep 0.05; done'],
        onOutput: ({ data }) => void (stubborn += data.toString()),
      });
      await until('both programs run', () => said === 'on\n' && stubborn === 'on\n');
      await guest.request('shutdown', { graceMs: 300 });
      deepEqual(await polite.exited, { code: 7 });
      equal(said, 'on\nbye\n');
      // reboot(2) in a PID namespace ends its first process by SIGHUP: pid_namespaces(7).
      ok(['SIGHUP', 128 + 1, 1].includes(await world.ended));
    } finally {
      await world.stop();
    }
  });
}
