// Terminals: size, resize, signals by keys, and coming back after a lost connection.
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import type { Suite } from '../cli/suite.js';
import { until } from '../harness.js';
import { where } from './programs.js';
import { World } from './world.js';

export async function terminalTests(suite: Suite): Promise<void> {
  const world = await World.start();
  try {
    await suite.test('a program on a terminal sees its size and each new one, and is stopped by a key', async () => {
      const { guest } = world.host();
      let screen = '';
      const pty = await guest.pty({
        ...where,
        argv: ['sh', '-c', 'trap "stty size" WINCH; tty; stty size; while :; do sleep 0.05; done'],
        rows: 30,
        columns: 100,
        onOutput: ({ stream, data }) => {
          equal(stream, 'terminal');
          screen += data.toString();
        },
      });
      await until('the first size', () => screen.includes('30 100'));
      match(screen, /^\/dev\/pts\/\d+\r\n30 100\r\n/);
      await pty.resize(40, 120);
      await until('the second size', () => screen.includes('40 120'));
      await rejects(pty.end(), { code: 'E_STATE' });
      await pty.write(Buffer.from('\x03'));
      deepEqual(await pty.exited, { signal: 'SIGINT' });
      await pty.ended;
      await rejects(pty.resize(1, 1), { code: 'E_STATE' });
      await pty.forget();
    });

    await suite.test('a terminal goes on when the connection is lost in the middle of it, without a gap', async () => {
      const { guest, drop, connections } = world.host();
      let screen = '';
      let dropAt = 20_000;
      const pty = await guest.pty({
        ...where,
        argv: ['sh', '-c', 'stty -echo; echo ready; read go; seq 1 20000; read word; echo "got $word"'],
        rows: 24,
        columns: 80,
        ring: 1 << 20,
        onOutput: ({ data }) => {
          screen += data.toString();
          if (screen.length < dropAt) return;
          dropAt += 20_000;
          drop();
        },
      });
      await until('it is ready', () => screen.includes('ready'));
      await pty.write(Buffer.from('\n'));
      await until('all lines', () => screen.includes('\r\n20000\r\n'));
      drop();
      await pty.write(Buffer.from('twig\n'));
      deepEqual(await pty.exited, { code: 0 });
      await pty.ended;
      equal(screen, `ready\r\n${Array.from({ length: 20_000 }, (_, i) => `${i + 1}\r\n`).join('')}got twig\r\n`);
      equal(pty.lost, 0);
      ok(connections() >= 3); // lost at least once in the middle, and once at the end
      await pty.forget();
    });

    await suite.test('a new host finds the terminal, and gets what its ring kept', async () => {
      const { guest: first } = world.host();
      const pty = await first.pty({
        ...where,
        argv: ['sh', '-c', 'seq 1 5000; read word; echo "got $word"'],
        rows: 24,
        columns: 80,
        key: 'shell',
        ring: 4096,
        onOutput: () => new Promise<void>(() => undefined), // a window that hangs
      });
      const { guest: second } = world.host();
      await until('all is printed', async () => {
        const one = (await second.list()).find(({ key }) => key === 'shell');
        return one !== undefined && one.to >= 5000 * 4;
      });
      first.close();
      await rejects(pty.exited, { code: 'E_SHUTDOWN' });
      const listed = (await second.list()).find(({ key }) => key === 'shell');
      if (listed === undefined) throw new Error('the terminal is not listed');
      equal(listed.kind, 'pty');
      let screen = '';
      const again = await second.attach(listed, ({ data }) => void (screen += data.toString()), { from: 0 });
      await again.write(Buffer.from('leaf\n'));
      deepEqual(await again.exited, { code: 0 });
      await again.ended;
      ok(again.lost > 0);
      match(screen, /4999\r\n5000\r\nleaf\r\ngot leaf\r\n$/);
      await again.forget();
    });
  } finally {
    await world.stop();
  }
}
