// Bytes that are no requests, requests that make no sense, and hosts that do not read: pid 1 answers or hangs up, and lives.
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { createConnection } from 'node:net';
import type { Suite } from '../cli/suite.js';
import { until } from '../harness.js';
import { randomFrom } from '../model/steps.js';
import { shell } from './programs.js';
import { World } from './world.js';

const SEED = 20_261;
const lines = (said: string) => said.split('\n').length - 1;

export async function hostileTests(suite: Suite): Promise<void> {
  const world = await World.start();
  const { guest } = world.host();
  try {
    await suite.test('garbage is answered line by line, and the connection stays', async () => {
      const garbage = ['x', '{', '[]', '{"id":"a"}', '\0\xff\xfe', '{"id":1,"method":{}}', '[['.repeat(1000)];
      const bytes = Buffer.from(`${garbage.join('\n')}\n{"id":9,"method":"hello"}\n`, 'latin1');
      const { said } = await world.raw(bytes, (text) => lines(text) === garbage.length + 1);
      const answers = said.trim().split('\n');
      for (const each of answers.slice(0, -1)) match(each, /"E_BAD_REQUEST"/);
      match(answers.at(-1) ?? '', /"protocol":1/);
    });

    await suite.test('a line that is too long is answered, and the connection closed', async () => {
      const { said, closed } = await world.raw(Buffer.alloc(300 * 1024, 'x'), () => false);
      match(said, /"E_TOO_BIG"/);
      ok(closed);
    });

    await suite.test('wrong types and numbers for every method', async () => {
      const methods = [
        'exec',
        'pty',
        'attach',
        'ack',
        'input',
        'resize',
        'signal',
        'wait',
        'forget',
        'reseed',
        'clock',
      ];
      const all = [...methods, 'detach', 'identity', 'fork.child', 'port.forward', 'shutdown', 'nonsense'];
      const wrong: unknown[] = [null, true, -1, 1.5, 1e300, '', '\0', [], {}, [[]], { b64: '?' }, 'x'.repeat(5000)];
      const keys = ['process', 'argv', 'env', 'cwd', 'at', 'data', 'rows', 'columns', 'signal', 'entropy', 'port'];
      const requests = all.flatMap((method) =>
        wrong.map((value) => ({
          method,
          params: {
            graceMs: 'soon',
            ...Object.fromEntries([...keys, 'identity', 'branch', 'to', 'window'].map((key) => [key, value])),
          },
        })),
      );
      const bytes = requests.map((request, id) => `${JSON.stringify({ id, ...request })}\n`).join('');
      const { said } = await world.raw(Buffer.from(bytes), (text) => lines(text) === requests.length);
      for (const line of said.trim().split('\n')) match(line, /"error":\{"code":"E_(BAD_REQUEST|NO_METHOD)"/);
    });

    await suite.test('random bytes, and requests with bytes changed', async () => {
      console.log(`      seed ${SEED}`);
      const random = randomFrom(SEED);
      const upTo = (most: number) => Math.floor(random() * most);
      const request = JSON.stringify({
        id: 1,
        method: 'exec',
        params: { argv: ['true'], env: {}, cwd: '/', window: 4096, stdin: 'pipe' },
      });
      for (let round = 0; round < 50; round++) {
        const parts = Array.from({ length: 20 }, () => {
          const bytes = Buffer.from(`${request}\n`);
          for (let change = upTo(4); change > 0; change--) bytes[upTo(bytes.length)] = upTo(256);
          return bytes;
        });
        parts.push(Buffer.from('\n{"id":77,"method":"hello"}\n'));
        await world.raw(Buffer.concat(parts), (text) => text.includes('"protocol":1'));
      }
      equal((await guest.hello()).protocol, 1);
    });

    await suite.test(
      'a host that asks and never reads is not read from either, and the others are served',
      async () => {
        const socket = createConnection(world.socket);
        socket.on('error', () => undefined);
        socket.pause();
        const many = Buffer.from('{"id":1,"method":"hello"}\n'.repeat(10_000));
        let blocked = false;
        // Until the kernel's buffers are full on both sides: then pid 1 has stopped to take requests.
        await until('it stops to take requests', () => {
          if (socket.writableLength > 8 * 1024 * 1024) blocked = true;
          else socket.write(many);
          return blocked;
        });
        equal((await guest.hello()).protocol, 1);
        const memory = Number(/VmRSS:\s+(\d+) kB/.exec(await shell(guest, 'cat /proc/1/status'))?.[1]);
        ok(memory < 64 * 1024, `pid 1 takes ${memory} KiB`);
        socket.destroy();
      },
    );

    await suite.test('more connections than there may be are closed, and the next after that are served', async () => {
      const sockets = Array.from({ length: 100 }, () => createConnection(world.socket));
      let closed = 0;
      for (const socket of sockets)
        socket
          .on('error', () => undefined)
          .on('close', () => closed++)
          .resume();
      await until('the rest is closed', () => closed >= 36);
      equal((await guest.hello()).protocol, 1);
      for (const socket of sockets) socket.destroy();
      const { guest: late } = world.host();
      equal((await late.hello()).protocol, 1);
    });

    await suite.test('connections that end in the middle of a request', async () => {
      for (let i = 0; i < 50; i++) {
        const socket = createConnection(world.socket);
        socket.on('error', () => undefined);
        await new Promise((resolve) => socket.once('connect', resolve));
        socket.write(
          '{"id":1,"method":"exec","params":{"argv":["true"],"env":{},"cwd":"/","window":4096}}\n{"id":2,"met',
        );
        socket.destroy();
      }
      equal((await guest.hello()).protocol, 1);
      await until('all of them have ended', async () => (await guest.list()).every(({ ended }) => ended));
      deepEqual((await guest.hello()).problems, []);
    });
  } finally {
    await world.stop();
  }
}
