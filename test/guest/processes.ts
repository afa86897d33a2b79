// Programs: their streams, their ends, their number, what they leave behind, and lost connections in the middle of them.
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type { Suite } from '../cli/suite.js';
import { until } from '../harness.js';
import { describeExit, environment, shell, where, zombies } from './programs.js';
import { World } from './world.js';

const BIG = 10 * 1024 * 1024;

const digest = (data: Buffer) => createHash('sha256').update(data).digest('hex');

export async function processTests(suite: Suite): Promise<void> {
  const world = await World.start();
  const { guest } = world.host();
  try {
    await suite.test('10 MiB go in and come out again', async () => {
      const data = randomBytes(BIG);
      const { exit, stdout } = await guest.run({ ...where, argv: ['cat'], stdin: data });
      deepEqual(exit, { code: 0 });
      equal(stdout.length, BIG);
      equal(digest(stdout), digest(data));
    });

    await suite.test('10 MiB go in and come out again while the connection is lost over and over', async () => {
      const { guest: other, drop, connections } = world.host();
      const data = randomBytes(BIG);
      const parts: Buffer[] = [];
      let size = 0;
      let dropAt = BIG / 10;
      const cat = await other.exec({
        ...where,
        argv: ['cat'],
        input: true,
        onOutput: ({ data: part }) => {
          parts.push(part);
          size += part.length;
          if (size < dropAt) return;
          dropAt += BIG / 10;
          drop();
        },
      });
      await cat.write(data);
      await cat.end();
      deepEqual(await cat.exited, { code: 0 });
      equal(digest(Buffer.concat(parts)), digest(data));
      equal(cat.lost, 0);
      ok(connections() >= 10, `${connections()} connections`);
      await cat.forget();
    });

    await suite.test('both streams keep apart, the status and the signal come back', async () => {
      const result = await guest.run({ ...where, argv: ['sh', '-c', 'echo out; echo err >&2; exit 42'] });
      deepEqual(result.exit, { code: 42 });
      equal(result.stdout.toString(), 'out\n');
      equal(result.stderr.toString(), 'err\n');
      const killed = await guest.run({ ...where, argv: ['sh', '-c', 'kill -SEGV $$'] });
      deepEqual(killed.exit, { signal: 'SIGSEGV' });
    });

    await suite.test('environment, folder and user are what was asked, and nothing else', async () => {
      const { stdout } = await guest.run({
        argv: ['sh', '-c', 'env | sort | grep -v "^_=\\|^PWD=\\|^SHLVL="; pwd; id -u; id -g; id -G; umask'],
        env: { A: 'b c', B: { b64: Buffer.from([0xff]).toString('base64') } },
        cwd: '/usr',
        uid: 1234,
        gid: 4321,
        groups: [77],
      });
      deepEqual(stdout.toString('latin1').split('\n').slice(0, 2), ['A=b c', 'B=\xff']);
      match(stdout.toString('latin1'), /\nPATH=[^\n]*\n\/usr\n1234\n4321\n4321 77\n0022\n$/);
    });

    await suite.test('what cannot be started says why', async () => {
      await rejects(guest.run({ ...where, argv: ['no-such-program'] }), { code: 'E_EXEC' });
      await rejects(guest.run({ ...where, argv: ['/etc/passwd'] }), { code: 'E_EXEC' });
      await rejects(guest.run({ env: environment, argv: ['true'], cwd: '/no/such/folder' }), { code: 'E_CWD' });
      equal((await guest.list()).length, 0);
    });

    await suite.test('a program is stopped, continued and killed, alone or with its group', async () => {
      let said = '';
      const process = await guest.exec({
        ...where,
        argv: ['sh', '-c', 'sleep 1000 & echo $!; wait'],
        onOutput: ({ data }) => void (said += data.toString()),
      });
      await until('it says the number of its child', () => said.endsWith('\n'));
      const state = async (pid: number | string) => (await shell(guest, `ps -o stat= -p ${pid} || true`)).trim();
      await process.signal('SIGSTOP');
      await until('it is stopped', async () => (await state(process.pid)).startsWith('T'));
      await process.signal('SIGCONT');
      await until('it goes on', async () => (await state(process.pid)).startsWith('S'));
      await process.signal('SIGKILL', 'process');
      deepEqual(await process.exited, { signal: 'SIGKILL' });
      match(await state(said.trim()), /^S/);
      await process.signal('SIGKILL'); // its group lives on in the child
      await process.ended;
      await until('the child is gone', async () => (await state(said.trim())) === '');
      await rejects(process.signal('SIGKILL'), { code: 'E_STATE' });
      await process.forget();
      await process.forget(); // an answer may have been lost
      await rejects(guest.request('wait', { process: process.number }), { code: 'E_NO_PROCESS' });
    });

    await suite.test('100 programs at once', async () => {
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, i) => guest.run({ ...where, argv: ['sh', '-c', `echo ${i}; exit ${i}`] })),
      );
      deepEqual(
        results.map(({ exit, stdout }) => `${describeExit(exit)} ${stdout.toString().trim()}`),
        results.map((_, i) => `code ${i} ${i}`),
      );
      deepEqual(await guest.list(), []);
    });

    await suite.test('orphans are collected, also by the hundred', async () => {
      await shell(guest, 'for i in $(seq 100); do (sh -c "exit $i" &) ; done');
      await until('no zombie is left', async () => (await zombies(guest)) === '');
    });

    await suite.test('a run is over when its program is, whatever it leaves behind', async () => {
      const { exit, stdout } = await guest.run({ ...where, argv: ['sh', '-c', 'echo done; sleep 1000 &'] });
      deepEqual(exit, { code: 0 });
      equal(stdout.toString(), 'done\n');
      equal((await shell(guest, 'pkill -x sleep && echo killed')).trim(), 'killed');
    });

    await suite.test('without a reader a program waits, or goes on and the oldest of its output goes', async () => {
      const numbers = ['sh', '-c', 'seq 1 20000'];
      const start = async (key: string, whenFull: 'wait' | 'drop') =>
        await guest.request('exec', { ...where, argv: numbers, key, whenFull, ring: 4096 });
      const waiting = await start('waiting', 'wait');
      const going = await start('going', 'drop');
      await guest.request('wait', { process: going.process });
      const listed = await guest.list();
      const find = (number: number) => {
        const found = listed.find(({ process }) => process === number);
        if (found === undefined) throw new Error(`process ${number} is not listed`);
        return found;
      };
      equal(find(waiting.process).exit, undefined);
      equal(find(going.process).to - find(going.process).from, 4096);
      const read = async (number: number) => {
        let text = '';
        const process = await guest.attach(find(number), ({ data }) => void (text += data.toString()));
        deepEqual(await process.exited, { code: 0 });
        await process.forget();
        return text;
      };
      const whole = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('');
      equal(await read(waiting.process), whole);
      equal(await read(going.process), whole.slice(-4096));
    });

    await suite.test('a key starts one program, however often it is asked', async () => {
      const ask = async () => await guest.request('exec', { ...where, argv: ['sleep', '1000'], key: 'the one' });
      const [first, second] = await Promise.all([ask(), ask()]);
      const third = await ask();
      equal(first.process, second.process);
      equal(first.process, third.process);
      deepEqual([first.existing, second.existing, third.existing], [false, true, true]);
      await guest.request('signal', { process: first.process, signal: 'SIGKILL' });
      await guest.request('wait', { process: first.process });
      await guest.request('forget', { process: first.process });
    });

    await suite.test('input has its numbers: what came is left out, a gap is refused', async () => {
      const started = await guest.request('exec', { ...where, argv: ['cat'], stdin: 'pipe', window: 4096 });
      const { process } = started;
      const input = async (at: number, text: string, end = false) =>
        await guest.request('input', { process, at, data: Buffer.from(text).toString('base64'), end });
      deepEqual(await input(0, 'abc'), { received: 3 });
      deepEqual(await input(1, 'bcde'), { received: 5 });
      await rejects(input(6, 'x'), { code: 'E_GAP' });
      deepEqual(await input(5, '', true), { received: 5 });
      await rejects(input(5, 'x'), { code: 'E_STATE' });
      deepEqual(await guest.request('wait', { process }), { exit: { code: 0 }, to: 5 });
      await guest.request('forget', { process });
    });

    await suite.test('a port of the guest can be reached, and its listeners are listed', async () => {
      const line = [
        'import socket',
        's = socket.create_server(("127.0.0.1", 0))',
        'print(s.getsockname()[1], flush=True)',
        'c = s.accept()[0]',
        'data = b""',
        'while part := c.recv(65536): data += part',
        'c.sendall(data[::-1])',
      ].join('\n');
      let said = '';
      const server = await guest.exec({
        ...where,
        argv: ['python3', '-c', line],
        onOutput: ({ data }) => void (said += data.toString()),
      });
      await until('the server listens', () => said.endsWith('\n'));
      const port = Number(said);
      const { ports } = await guest.request('port.list', {});
      deepEqual(ports, [{ port, loopbackOnly: true }]);
      const socket = await guest.forward(port);
      const data = randomBytes(1 << 20);
      const parts: Buffer[] = [];
      socket.on('data', (part) => parts.push(part));
      const over = new Promise((resolve) => socket.once('end', resolve));
      socket.resume().end(data);
      await over;
      equal(digest(Buffer.concat(parts)), digest(Buffer.from(data).reverse()));
      deepEqual(await server.exited, { code: 0 });
      await server.forget();
      await rejects(guest.forward(1), { code: 'E_NO_PORT' });
    });

    await suite.test('nothing is left behind', async () => {
      deepEqual(await guest.list(), []);
      equal(await zombies(guest), '');
      // pid 1 and the shell that asks, with its ps.
      match(await shell(guest, 'ps -e --no-headers -o comm='), /^bough-init\nsh\nps\n$/);
      const descriptors = (await shell(guest, 'ls /proc/1/fd')).trim().split('\n').length;
      ok(descriptors < 20, `pid 1 has ${descriptors} descriptors`);
    });
  } finally {
    await world.stop();
  }
}
