// The client's side of the wire, against a socket that answers by the protocol's page. The real boughfs is asked in test/.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BoughfsEvent } from '../protocol/boughfs.js';
import { Boughfs, isAlive } from './boughfs.js';

let folder = '';
let path = '';
let server: Server;
let answer: (request: { id: number; method: string }, socket: Socket) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bough-wire-'));
  path = join(folder, 'socket');
  server = createServer((socket) => {
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      text += data.toString('utf8');
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) answer(JSON.parse(line) as { id: number; method: string }, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the client of boughfs', () => {
  it('puts answers together that come in pieces, and tells them apart by id', async () => {
    const waiting: number[] = [];
    answer = ({ id }, socket) => {
      waiting.push(id);
      if (waiting.length < 2) return;
      const lines = waiting
        .reverse()
        .map((each) => `${JSON.stringify({ id: each, result: { data: 'ü', size: each, eof: true } })}\n`);
      const bytes = Buffer.from(lines.join(''));
      // One byte at a time, so that also a character comes in two pieces.
      for (const byte of bytes) socket.write(Buffer.from([byte]));
    };
    const client = await Boughfs.connect(path);
    const at = { branch: 'b', side: 'branch', path: 'f' } as const;
    const both = await Promise.all([client.request('branch.read', at), client.request('branch.read', at)]);
    expect(both).toEqual([
      { data: 'ü', size: 1, eof: true },
      { data: 'ü', size: 2, eof: true },
    ]);
    client.close();
  });

  it('passes errors on with their code and conflicts', async () => {
    const conflicts = [{ path: 'a', reason: 'both-changed' }];
    answer = ({ id }, socket) =>
      socket.write(`${JSON.stringify({ id, error: { code: 'E_CONFLICT', message: 'No.', data: { conflicts } } })}\n`);
    const client = await Boughfs.connect(path);
    await expect(client.request('branch.commit', { branch: 'b' })).rejects.toMatchObject({
      code: 'E_CONFLICT',
      message: 'No.',
      detail: { conflicts },
    });
    client.close();
  });

  it('tells events to who listens', async () => {
    answer = ({ id }, socket) =>
      socket.write(`{"id":${id},"result":{}}\n{"event":"edits","branch":"b","edits":4}\n{"event":"drift"}\n`);
    const client = await Boughfs.connect(path);
    const events: BoughfsEvent[] = [];
    const both = new Promise<void>((resolve) => {
      client.onEvent((event) => {
        events.push(event);
        if (events.length === 2) resolve();
      });
    });
    await client.request('subscribe', {});
    await both;
    expect(events).toEqual([{ event: 'edits', branch: 'b', edits: 4 }, { event: 'drift' }]);
    client.close();
  });

  it('fails what waits, and what comes after, when the other side dies or speaks nonsense', async () => {
    answer = (_, socket) => socket.write('this is no JSON\n');
    const client = await Boughfs.connect(path);
    await expect(client.request('hello', {})).rejects.toMatchObject({ code: 'E_BOUGHFS_GONE' });
    await client.closed;
    expect(client.isAlive).toBe(false);
    await expect(client.request('hello', {})).rejects.toMatchObject({ code: 'E_BOUGHFS_GONE' });
  });

  it('refuses a request that the other side would not read', async () => {
    answer = () => undefined;
    const client = await Boughfs.connect(path);
    const data = 'a'.repeat(17 * 1024 * 1024);
    await expect(
      client.request('branch.resolve', { branch: 'b', path: 'f', take: 'content', data }),
    ).rejects.toMatchObject({ code: 'E_TOO_BIG' });
    client.close();
  });

  it('knows whether somebody answers', async () => {
    answer = ({ id }, socket) => socket.write(`{"id":${id},"result":{}}\n`);
    expect(await isAlive(path)).toBe(true);
    expect(await isAlive(join(folder, 'nobody'))).toBe(false);
  });
});
