// How the host gets a connection to a port of a machine: through the machine's unix socket, on which boughvm carries vsock. Used by
// guest.ts through `Dial`, so that tests can connect to a bough-init that listens on a unix socket itself.
import { createConnection, type Socket } from 'node:net';
import { BoughError } from '../../protocol/failure.js';

export const GUEST_PORT = 1024;

/** A new connection to bough-init each time. Rejects when there is none now. */
export type Dial = () => Promise<Socket>;

/** "OK 4294967295\n" and some room. */
const ANSWER_LIMIT = 64;

export function dialUnix(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    const fail = (error: Error) => reject(unreachable(error.message));
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

/**
 * Connects to a vsock port of the guest. The socket is paused until its reader resumes it.
 * @param path the machine's unix socket
 * @param deadlineMs after which an answer does not come any more
 */
export async function dialVsock(path: string, port = GUEST_PORT, deadlineMs = 30_000): Promise<Socket> {
  const socket = await dialUnix(path);
  return await new Promise((resolve, reject) => {
    let said = Buffer.alloc(0);
    const settle = (error: BoughError | null) => {
      clearTimeout(timer);
      socket.off('data', take).off('error', fail).off('close', gone);
      if (error === null) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(error);
    };
    const take = (data: Buffer) => {
      said = Buffer.concat([said, data]);
      const end = said.indexOf(10);
      if (end < 0 && said.length <= ANSWER_LIMIT) return;
      const line = said.subarray(0, Math.max(end, 0)).toString('latin1');
      if (!/^OK \d+$/.test(line)) {
        settle(unreachable(`it said ${JSON.stringify(line)}`));
        return;
      }
      socket.pause();
      settle(null);
      if (end + 1 < said.length) socket.unshift(said.subarray(end + 1));
    };
    const fail = (error: Error) => settle(unreachable(error.message));
    const gone = () => settle(unreachable('nobody listens on that port in the guest'));
    const timer = setTimeout(() => settle(unreachable('it did not answer in time')), deadlineMs);
    socket.on('data', take).on('error', fail).on('close', gone);
    socket.write(`CONNECT ${port}\n`);
  });
}

function unreachable(why: string): BoughError {
  return new BoughError('E_GUEST_UNREACHABLE', `The machine cannot be reached: ${why}.`, {
    fix: 'It may still be starting, or it has ended: see its console.',
  });
}
