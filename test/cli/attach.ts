// attach: a branch's terminal in this one, over a real pseudoterminal of script(1). Steps of main.ts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';

import { until } from '../harness.js';
import { program, type Command } from './command.js';
import type { Suite } from './suite.js';

/** A program on a pseudoterminal: what it printed, and its keyboard. */
class Terminal {
  seen = '';
  status: number | null | undefined;
  private readonly child;

  constructor(command: string, options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
      ...options,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child.stdout.on('data', (part: Buffer) => (this.seen += part.toString('utf8')));
    this.child.on('close', (status) => (this.status = status));
  }

  type(keys: string): void {
    this.child.stdin.write(keys);
  }

  async untilSeen(pattern: RegExp): Promise<void> {
    await until(`${String(pattern)} in: ${this.seen}`, () => pattern.test(this.seen)).catch(() => {
      throw new Error(`${String(pattern)} was never printed; it printed: ${this.seen}`);
    });
  }

  async untilEnded(): Promise<number | null> {
    await until('the program ends', () => this.status !== undefined);
    return this.status ?? null;
  }

  kill(): void {
    if (this.status === undefined) this.child.kill('SIGKILL');
  }
}

export async function attachTests(suite: Suite, bough: Command): Promise<void> {
  const { folder, environment } = bough.world;
  const attach = () =>
    new Terminal(`'${process.execPath}' '${program}' attach session`, { cwd: folder, env: environment });

  await suite.test('attach shows the live terminal, and Ctrl-] leaves it running', async () => {
    const terminal = attach();
    try {
      await terminal.untilSeen(/Ctrl-\] leaves/);
      terminal.type('kept=$((40 + 2)); echo "answer: $kept"\r');
      await terminal.untilSeen(/answer: 42/);
      terminal.type('\x1d');
      assert.equal(await terminal.untilEnded(), 0);
      assert.match(terminal.seen, /it runs on\]/);
    } finally {
      terminal.kill();
    }
    assert.match(await bough.text('ls'), /^ {2}session +\S+ +running /m);
  });

  await suite.test('attached again it has its history and its state', async () => {
    const terminal = attach();
    try {
      await terminal.untilSeen(/answer: 42/);
      terminal.type('echo "still $kept"\r');
      await terminal.untilSeen(/still 42/);
      terminal.type('\x1d');
      assert.equal(await terminal.untilEnded(), 0);
    } finally {
      terminal.kill();
    }
  });

  await suite.test('when the program ends, attach ends with its status, and --shell starts a new one', async () => {
    const terminal = attach();
    try {
      await terminal.untilSeen(/Ctrl-\] leaves/);
      terminal.type('exit 3\r');
      assert.equal(await terminal.untilEnded(), 3);
      assert.match(terminal.seen, /ended with status 3\]/);
    } finally {
      terminal.kill();
    }
    const again = new Terminal(`'${process.execPath}' '${program}' attach session --shell`, {
      cwd: folder,
      env: environment,
    });
    try {
      await again.untilSeen(/Ctrl-\] leaves/);
      again.type('echo "new $((1 + 1)) shell"\r');
      await again.untilSeen(/new 2 shell/);
      again.type('\x1d');
      assert.equal(await again.untilEnded(), 0);
    } finally {
      again.kill();
    }
  });
}
