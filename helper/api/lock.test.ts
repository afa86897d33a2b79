import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { takeLock } from './lock.js';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bough-lock-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('is held by one process and free again once that one was killed', async () => {
  const path = join(folder, 'lock');
  const program = `import { takeLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
    process.stdout.write(String(takeLock(${JSON.stringify(path)})));
    setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [said] = (await once(holder.stdout, 'data')) as [Buffer];
    expect(said.toString()).toBe('true');
    expect(readFileSync(path, 'utf8')).toBe(`${holder.pid}\n`);
    expect(takeLock(path)).toBe(false);
    const ended = once(holder, 'exit');
    holder.kill('SIGKILL');
    await ended;
    expect(takeLock(path)).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe(`${process.pid}\n`);
    expect(takeLock(path)).toBe(false);
  } finally {
    holder.kill('SIGKILL');
  }
});
