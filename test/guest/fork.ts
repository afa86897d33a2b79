// Freezing, and the steps of a fork of the machine as far as they happen in the guest.
import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict';
import type { Suite } from '../cli/suite.js';
import { until } from '../harness.js';
import { shell, where } from './programs.js';
import { World } from './world.js';

const ENTROPY = Buffer.alloc(32, 7).toString('base64');

/** A program that counts; the counter's last value that has arrived. */
async function ticker(guest: ReturnType<World['host']>['guest']) {
  let last = 0;
  await guest.exec({
    ...where,
    argv: ['sh', '-c', 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done'],
    onOutput: ({ data }) => void (last = Number(data.toString().trim().split('\n').at(-1))),
  });
  await until('it counts', () => last > 0);
  const counts = async () => {
    const before = last;
    await until('it counts on', () => last > before);
  };
  /** What it writes now, as pid 1 sees it: nothing while it is frozen. */
  const written = async () => (await guest.list())[0]?.to ?? -1;
  return { counts, written };
}

export async function forkTests(suite: Suite): Promise<void> {
  const world = await World.start();
  const { guest } = world.host();
  try {
    const { counts, written } = await ticker(guest);

    await suite.test('freeze stops every program, thaw lets them go on', async () => {
      const { tookUs } = await guest.request('freeze', {});
      ok(tookUs < 2_000_000);
      const state = await written();
      deepEqual((await guest.hello()).frozen, ['host']);
      await rejects(guest.run({ ...where, argv: ['true'] }), { code: 'E_FROZEN' });
      equal(await written(), state);
      await guest.request('thaw', {});
      await counts();
    });

    await suite.test('the source: prepare, then go on', async () => {
      await guest.prepareFork();
      deepEqual((await guest.hello()).frozen, ['fork']);
      await guest.forkedParent();
      await counts();
      equal((await guest.hello()).forks, 0);
    });

    await suite.test('the child: frozen until a new host has given it entropy, clock and identity', async () => {
      const { bootId: before } = await guest.hello();
      const { guest: source, drop } = world.host();
      await source.prepareFork();
      drop(); // as the transport reset does
      const { guest: host } = world.host();
      deepEqual((await host.hello()).frozen, ['fork']);
      const state = await written();
      const identity = { branch: 'b-17', name: 'try two', index: 2, hostname: 'try-two' };
      const child = await host.forkedChild(identity);
      await counts();
      ok((await written()) > state);
      equal(child.forks, 1);
      notEqual(child.bootId, before);
      const hello = await host.hello();
      equal(hello.bootId, child.bootId);
      equal(hello.hostname, 'try-two');
      deepEqual(hello.identity, { branch: 'b-17', name: 'try two', index: 2 });
      deepEqual(hello.frozen, []);
      const told = JSON.parse(await shell(host, 'cat /run/bough/identity')) as Record<string, unknown>;
      deepEqual(told, {
        branch: 'b-17',
        name: 'try two',
        index: 2,
        hostname: 'try-two',
        bootId: child.bootId,
        forks: 1,
      });
      equal((await shell(host, 'cat /proc/sys/kernel/random/boot_id')).trim(), child.bootId);
      const grandchild = await host.forkedChild({ branch: 'b-18', name: 'a child of it' });
      notEqual(grandchild.bootId, child.bootId);
      equal((await shell(host, 'cat /proc/sys/kernel/random/boot_id')).trim(), grandchild.bootId);
    });

    await suite.test('a child whose clock cannot be set stays frozen', async () => {
      await guest.prepareFork();
      const yesterday = (Date.now() - 86_400_000) * 1000; // this computer does not let it
      const request = { entropy: ENTROPY, identity: { branch: 'b', name: 'n' }, realtimeUs: yesterday };
      await rejects(guest.request('fork.child', request), { code: 'E_CLOCK' });
      deepEqual((await guest.hello()).frozen, ['fork']);
      await guest.forkedParent();
      await counts();
    });

    await suite.test('a freeze of the host outlasts a fork', async () => {
      await guest.request('freeze', {});
      await guest.prepareFork();
      await guest.request('fork.child', { entropy: ENTROPY, identity: { branch: 'b', name: 'n' } });
      deepEqual((await guest.hello()).frozen, ['host']);
      const state = await written();
      equal(await written(), state);
      await guest.request('thaw', {});
      await counts();
    });

    await suite.test('reseed, and a clock that is right already', async () => {
      await guest.request('reseed', { entropy: ENTROPY });
      deepEqual(await guest.request('clock', { realtimeUs: Date.now() * 1000 }), { steppedUs: 0 });
      await rejects(guest.request('reseed', { entropy: 'QUFB' }), { code: 'E_BAD_REQUEST' });
      match(await shell(guest, 'head -c 16 /dev/urandom | od -An -tx1'), /^( [0-9a-f]{2}){16}\n$/);
    });
  } finally {
    await world.stop();
  }
}
