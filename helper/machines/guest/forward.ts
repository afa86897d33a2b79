// Turns a fresh connection to bough-init into one to a TCP port of the guest. Used by guest.ts.
import type { Socket } from 'node:net';
import { BoughError } from '../../protocol/failure.js';
import { LINE_LIMIT } from './channel.js';
import { answer as answerShape } from './messages.js';

/** Settles with the same socket, from which only the port's bytes come, or rejects with E_NO_PORT and closes it. */
export function forwardPort(socket: Socket, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let said = Buffer.alloc(0);
    const settle = (error: BoughError | null) => {
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
      if (end < 0 && said.length < LINE_LIMIT) return;
      const error = refusal(said.subarray(0, Math.max(end, 0)).toString('utf8'));
      socket.pause();
      settle(error);
      if (error === null && end + 1 < said.length) socket.unshift(said.subarray(end + 1));
    };
    const fail = (error: Error) =>
      settle(new BoughError('E_GUEST_GONE', `The port cannot be reached: ${error.message}.`));
    const gone = () => settle(new BoughError('E_GUEST_GONE', 'The port cannot be reached: the connection ended.'));
    socket.on('data', take).on('error', fail).on('close', gone);
    socket.write(`${JSON.stringify({ id: 1, method: 'port.forward', params: { port } })}\n`);
  });
}

/** Null when the answer says yes. */
function refusal(line: string): BoughError | null {
  try {
    const { error } = answerShape.parse(JSON.parse(line));
    return error === undefined ? null : new BoughError(error.code, error.message);
  } catch {
    return new BoughError('E_GUEST_GONE', 'The port cannot be reached: the machine answered nonsense.');
  }
}
