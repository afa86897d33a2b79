// Keeps one emulated KVM host up under a name, for many clients and many commands at once.
//   node scripts/kvm-host/keeper.mjs NAME MEMORY_MIB FOLDER…
// Started by host.mjs. A client connects to the socket, starts one command on its connection with frames of frames.mjs,
// and reads the answer; a client that goes away takes its command with it.
import { mkdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { runMain } from '../report.mjs';
import { encodeFrame, FrameReader, FrameType } from './frames.mjs';
import { cacheFolder } from './kernel.mjs';
import { bootMachine } from './machine.mjs';

/** A machine that nobody used for so long has been forgotten. */
const idleMs = 4 * 60 * 60_000;

/** @param {string} name of the kept machine @returns {string} its socket; in the cache, because suites move XDG_RUNTIME_DIR */
export function keeperSocket(name) {
  return join(cacheFolder(), 'kvm-host', 'kept', `${name}.sock`);
}

/** @param {string} path @returns {Promise<import('node:net').Socket | undefined>} undefined if nobody listens */
export function connectTo(path) {
  return new Promise((resolve) => {
    const socket = connect(path, () => resolve(socket));
    socket.once('error', () => resolve(undefined));
  });
}

/** @param {string} path @returns {Promise<import('node:net').Server>} */
async function listen(path) {
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
  const other = await connectTo(path);
  if (other !== undefined) {
    other.destroy();
    process.exit(0); // somebody else was faster: their machine is as good
  }
  rmSync(path, { force: true }); // of a keeper that was killed
  const server = createServer();
  const before = process.umask(0o177);
  await new Promise((resolve, reject) => server.once('error', reject).listen(path, () => resolve(undefined)));
  process.umask(before);
  return server;
}

/** @param {string} name @param {number} memoryMib @param {readonly string[]} shares */
async function keep(name, memoryMib, shares) {
  const path = keeperSocket(name);
  const server = await listen(path);
  // Clients may come while the machine boots; they wait.
  const booting = bootMachine({ shares, memoryMib });
  /** @type {Map<number, import('node:net').Socket>} */
  const clients = new Map();
  let lastId = 0;
  /** @type {NodeJS.Timeout | undefined} */
  let idle;
  /** @type {() => void} */
  let stop = () => undefined;
  const stopped = new Promise((resolve) => (stop = () => resolve(undefined)));
  const watchIdle = () => {
    clearTimeout(idle);
    if (clients.size === 0 && server.listening) idle = setTimeout(stop, idleMs);
  };
  watchIdle();

  server.on('connection', (socket) => {
    const id = ++lastId;
    clients.set(id, socket);
    watchIdle();
    const reader = new FrameReader();
    socket.on('data', (bytes) => {
      for (const { type, data } of reader.push(bytes)) {
        if (type === FrameType.stop) stop();
        else
          void booting.then(
            (machine) => machine.send(encodeFrame(id, type, data)),
            () => undefined,
          );
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (!clients.delete(id)) return; // its command has ended
      watchIdle();
      void booting.then(
        (machine) => machine.send(encodeFrame(id, FrameType.signal, Buffer.from([9]))),
        () => undefined,
      );
    });
  });
  try {
    const machine = await booting;
    machine.onFrame(({ id, type, data }) => {
      const socket = clients.get(id);
      socket?.write(encodeFrame(id, type, data));
      if (type !== FrameType.end) return;
      clients.delete(id);
      socket?.end();
      watchIdle();
    });
    await Promise.race([stopped, machine.ended]);
    await machine.stop();
  } catch (error) {
    const { code, what, why, fix } = /** @type {import('../report.mjs').SetupError} */ (error);
    const text = `error ${code}: ${what}\n  why: ${why}\n  fix: ${fix}\n`;
    for (const [id, socket] of clients) {
      socket.write(encodeFrame(id, FrameType.error, Buffer.from(text)));
      socket.end(encodeFrame(id, FrameType.end, Buffer.from([125, 0])));
    }
    throw error;
  } finally {
    clearTimeout(idle);
    server.close();
    rmSync(path, { force: true });
  }
  for (const socket of clients.values()) socket.destroy();
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [name = 'default', memoryMib = '3072', ...shares] = process.argv.slice(2);
  await runMain(() => keep(name, Number(memoryMib), shares));
}
