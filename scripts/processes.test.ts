// Programs that hang, crash, or leave something behind: the runner must see and end all of them.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { killProcesses, lastLines, processesWithEnvironment, run, startService } from './processes.mjs';

const alive = (pid: number): boolean => {
  // A zombie is dead; in a container nobody may reap it.
  const status = `/proc/${pid}/status`;
  return existsSync(status) && !/^State:\s+[ZX]/m.test(readFileSync(status, 'utf8'));
};

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}

it('tells status, signal and output', async () => {
  expect(await run('sh', ['-c', 'echo out; echo err >&2; exit 3'])).toMatchObject({ status: 3, signal: null });
  expect((await run('sh', ['-c', 'echo out; echo err >&2'])).output.split('\n').sort()).toEqual(['', 'err', 'out']);
  expect(await run('sh', ['-c', 'kill -SEGV $$'])).toMatchObject({ status: null, signal: 'SIGSEGV' });
});

it('says why a program cannot be started', async () => {
  const result = await run('/no/such/program', []);
  expect(result.status).toBeNull();
  expect(result.spawnError?.message).toContain('ENOENT');
});

it('kills the whole group at the deadline', async () => {
  const result = await run('sh', ['-c', 'sleep 1000 & echo $!; wait'], { timeoutMs: 500 });
  expect(result.timedOut).toBe(true);
  const sleeper = Number(result.output.trim());
  await until(() => !alive(sleeper));
});

it('kills what a program leaves in its group, and does not wait for it', async () => {
  const result = await run('sh', ['-c', 'sleep 1000 & echo $!']);
  expect(result).toMatchObject({ status: 0, timedOut: false });
  const sleeper = Number(result.output.trim());
  await until(() => !alive(sleeper));
});

it('finds and kills processes that left the group, by their environment', async () => {
  const id = randomUUID();
  const sleeper = spawn('sleep', ['1000'], {
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, BOUGH_TEST_ID: id },
  });
  const exited = once(sleeper, 'exit');
  await once(sleeper, 'spawn');
  const found = (): string[] => processesWithEnvironment('BOUGH_TEST_ID', id).map((p) => p.command);
  await until(() => found()[0] === 'sleep 1000');
  expect(await killProcesses('BOUGH_TEST_ID', id)).toEqual([`${sleeper.pid ?? 0} sleep 1000`]);
  expect(await exited).toEqual([null, 'SIGKILL']);
  expect(found()).toEqual([]);
});

it('stops a service', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bough-service-'));
  try {
    const service = await startService('sh', ['-c', 'echo up; exec sleep 1000'], {
      env: process.env,
      logFile: join(folder, 'log'),
    });
    await until(() => readFileSync(service.logFile, 'utf8') === 'up\n');
    await service.stop();
    expect(await service.ended).toBe('signal SIGTERM');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('keeps the last lines', () => {
  expect(lastLines('a\nb\nc\n\n', 2)).toBe('b\nc');
});
