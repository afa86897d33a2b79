import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Transcript } from './transcript.js';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bough-transcript-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a transcript', () => {
  it('goes on where an earlier helper ended', async () => {
    const file = join(folder, 'goes-on');
    const first = new Transcript(file);
    first.append(Buffer.from('one\r\n'));
    await first.flush();
    const second = new Transcript(file);
    second.append(Buffer.from('two\r\n'));
    expect(second.replay()).toBe('one\r\ntwo\r\n');
    await second.flush();
    expect(readFileSync(file, 'utf8')).toBe('one\r\ntwo\r\n');
  });

  it('is readable by its owner alone', async () => {
    const file = join(folder, 'private');
    const transcript = new Transcript(file);
    transcript.append(Buffer.from('secret'));
    await transcript.flush();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('stays within its limits and begins with a whole line', async () => {
    const file = join(folder, 'long');
    const transcript = new Transcript(file);
    for (let line = 0; line < 60_000; line++) {
      transcript.append(Buffer.from(`${'ü'.repeat(50)} ${line}\n`));
      if (line % 5000 === 0) await transcript.flush();
    }
    await transcript.flush();
    expect(statSync(file).size).toBeLessThanOrEqual(4 * 1024 * 1024);
    const replay = transcript.replay();
    expect(Buffer.byteLength(replay)).toBeLessThanOrEqual(256 * 1024);
    expect(replay.endsWith(' 59999\n')).toBe(true);
    for (const line of replay.trimEnd().split('\n')) expect(line).toMatch(/^ü{50} \d+$/);
    expect(new Transcript(file).replay().endsWith(' 59999\n')).toBe(true);
  });

  it('writes nothing into a folder that is about to go', async () => {
    const file = join(folder, 'dropped');
    const transcript = new Transcript(file);
    transcript.append(Buffer.from('late'));
    await transcript.drop();
    transcript.append(Buffer.from('later'));
    await transcript.flush();
    expect(() => statSync(file)).toThrow('ENOENT');
  });
});
