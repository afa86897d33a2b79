// The host's side of a machine, against a socket that answers as a test wants. The real bough-init is asked in test/guest.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dialUnix, dialVsock } from './dial.js';
import { Guest } from './guest.js';

let folder = '';
let path = '';
let server: Server;
let sockets: Socket[];
/** Called with each line that the host sends. */
let answer: (line: string, socket: Socket) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bough-guest-'));
  path = join(folder, 'socket');
  sockets = [];
  server = createServer((socket) => {
    sockets.push(socket);
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      text += data.toString('utf8');
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) answer(line, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
});

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Asked {
  readonly id?: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Answers by method; what gives undefined is not answered. */
function answering(by: Readonly<Record<string, (asked: Asked, socket: Socket) => object | undefined>>): Asked[] {
  const asked: Asked[] = [];
  answer = (line, socket) => {
    const request = JSON.parse(line) as Asked;
    asked.push(request);
    const result = by[request.method]?.(request, socket);
    if (result !== undefined && request.id !== undefined) say(socket, { id: request.id, result });
  };
  return asked;
}

function say(socket: Socket, message: object): void {
  socket.write(`${JSON.stringify(message)}\n`);
}

const output = (at: number, text: string) => ({
  event: 'output',
  process: 1,
  stream: 'stdout',
  at,
  data: Buffer.from(text).toString('base64'),
});
const started = { process: 1, pid: 7, from: 0, to: 0, received: 0, existing: false };
const attached = { from: 0, to: 0, lost: 0, received: 0, ended: false };
const start = { argv: ['x'], env: {}, cwd: '/' } as const;

describe('a vsock port through the unix socket of a machine', () => {
  it('asks for the port, and what comes behind the answer is not lost', async () => {
    answer = (line, socket) => {
      expect(line).toBe('CONNECT 1024');
      socket.write('OK 1073741824\nfirst bytes');
    };
    const socket = await dialVsock(path);
    const first = new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString())));
    socket.resume();
    expect(await first).toBe('first bytes');
    socket.destroy();
  });

  it('says so when nobody listens in the guest, and when it is no machine', async () => {
    answer = (_, socket) => socket.destroy();
    await expect(dialVsock(path)).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
    answer = (_, socket) => socket.write('HTTP/1.1 400 Bad Request\n');
    await expect(dialVsock(path)).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
    answer = (_, socket) => socket.write('x'.repeat(100));
    await expect(dialVsock(path)).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
    answer = () => undefined;
    await expect(dialVsock(path, 1024, 10)).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
    await expect(dialVsock(join(folder, 'nothing'))).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
  });
});

describe('a guest', () => {
  const connect = () => new Guest({ dial: () => dialUnix(path), patienceMs: 1000 });

  it('delivers output that comes in the same breath as the answer', async () => {
    answering({
      exec: ({ id }, socket) => {
        const lines = [
          { id, result: started },
          output(0, 'a'),
          output(1, 'b'),
          { event: 'exit', process: 1, exit: { code: 0 }, to: 2 },
          { event: 'end', process: 1, to: 2 },
        ];
        socket.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
        return undefined;
      },
    });
    const guest = connect();
    let said = '';
    const process = await guest.exec({ ...start, onOutput: ({ data }) => void (said += data.toString()) });
    expect(await process.exited).toEqual({ code: 0 });
    await process.ended;
    expect(said).toBe('ab');
    guest.close();
  });

  it('acknowledges output only when its reader has taken it', async () => {
    const asked = answering({ exec: () => started, resize: () => ({}) });
    const guest = connect();
    let taken: () => void = () => undefined;
    const process = await guest.exec({ ...start, onOutput: () => new Promise<void>((resolve) => (taken = resolve)) });
    const acks = () => asked.filter(({ method }) => method === 'ack').map(({ params }) => params['to']);
    for (const socket of sockets) say(socket, output(0, 'abc'));
    await process.resize(1, 1); // an answer behind the output: it has arrived
    expect(acks()).toEqual([]);
    taken();
    await process.resize(1, 1);
    expect(acks()).toEqual([3]);
    guest.close();
  });

  it('goes on where it was on a new connection, leaves out what came twice and counts what is lost', async () => {
    const asked = answering({
      exec: () => started,
      attach: () => ({ ...attached, from: 3, to: 3 }),
      resize: () => ({}),
    });
    const guest = connect();
    let said = '';
    const process = await guest.exec({
      ...start,
      onOutput: ({ at, data }) => void (said += `${at}:${data.toString()} `),
    });
    for (const socket of sockets) say(socket, output(0, 'abc'));
    await process.resize(1, 1);
    for (const socket of sockets.splice(0)) socket.destroy();
    await process.resize(2, 2);
    expect(asked.find(({ method }) => method === 'attach')?.params).toMatchObject({ process: 1, from: 3 });
    for (const socket of sockets) {
      say(socket, output(1, 'bcde'));
      say(socket, output(10, 'x'));
    }
    await process.resize(3, 3);
    expect(said).toBe('0:abc 3:de 10:x ');
    expect(process.lost).toBe(5);
    guest.close();
  });

  it('sends input once more when its answer was lost, with the same number', async () => {
    let first = true;
    const asked = answering({
      exec: () => started,
      attach: () => attached,
      input: (_, socket) => {
        if (!first) return { received: 3 };
        first = false;
        socket.destroy();
        return undefined;
      },
    });
    const guest = connect();
    const process = await guest.exec({ ...start, input: true, onOutput: () => undefined });
    await process.write(Buffer.from('abc'));
    const inputs = asked.filter(({ method }) => method === 'input').map(({ params }) => params);
    expect(inputs).toEqual([
      { process: 1, at: 0, data: 'YWJj' },
      { process: 1, at: 0, data: 'YWJj' },
    ]);
    guest.close();
  });

  it('asks again for a start whose answer was lost, under the same key', async () => {
    let first = true;
    const asked = answering({
      exec: (_, socket) => {
        if (!first) return { ...started, existing: true };
        first = false;
        socket.destroy();
        return undefined;
      },
    });
    const guest = connect();
    expect((await guest.exec({ ...start, onOutput: () => undefined })).pid).toBe(7);
    const keys = asked.map(({ params }) => params['key']);
    expect(keys.length).toBe(2);
    expect(keys[0]).toBe(keys[1]);
    guest.close();
  });

  it('does not believe what has the wrong shape', async () => {
    const guest = connect();
    answer = (_, socket) => socket.write('no JSON\n');
    await expect(guest.request('identity', { branch: 'b', name: 'n' })).rejects.toMatchObject({ code: 'E_GUEST_GONE' });
    answering({ identity: () => ({ bootId: 1 }) });
    await expect(guest.request('identity', { branch: 'b', name: 'n' })).rejects.toMatchObject({ code: 'E_GUEST_GONE' });
    answer = (_, socket) => socket.write('x'.repeat(300 * 1024));
    await expect(guest.request('identity', { branch: 'b', name: 'n' })).rejects.toMatchObject({ code: 'E_GUEST_GONE' });
    guest.close();
  });

  it('gives up when the machine does not come back, and tells its processes', async () => {
    answering({ exec: () => started });
    const guest = new Guest({ dial: () => dialUnix(path), patienceMs: 50 });
    const process = await guest.exec({ ...start, onOutput: () => undefined });
    server.close();
    for (const socket of sockets) socket.destroy();
    await expect(process.exited).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
    await expect(process.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'E_GUEST_UNREACHABLE' });
    guest.close();
    await expect(guest.hello()).rejects.toMatchObject({ code: 'E_SHUTDOWN' });
  });

  it('becomes a stream to a port, or says that nobody listens', async () => {
    answer = (line, socket) => {
      const { id, params } = JSON.parse(line) as Asked;
      if (params['port'] === 80) socket.write(`${JSON.stringify({ id, result: {} })}\nhello`);
      else say(socket, { id, error: { code: 'E_NO_PORT', message: 'Nobody.' } });
    };
    const guest = connect();
    const socket = await guest.forward(80);
    const first = new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString())));
    socket.resume();
    expect(await first).toBe('hello');
    socket.destroy();
    await expect(guest.forward(81)).rejects.toMatchObject({ code: 'E_NO_PORT' });
    guest.close();
  });
});
