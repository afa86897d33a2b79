// bough-helper: the daemon's program. One per person; a second start finds the first and ends at once with status 0.
//   bough-helper [--idle-exit[=SECONDS]] [--version]
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { runDaemon } from './api/daemon.js';
import { BoughError } from './protocol/failure.js';

const IDLE_SECONDS = 60;

function version(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const manifest = JSON.parse(readFileSync(join(here, '..', 'package.json'), 'utf8')) as { version: string };
  return manifest.version;
}

function idleExitMs(args: readonly string[]): number | null {
  const option = args.find((arg) => arg === '--idle-exit' || arg.startsWith('--idle-exit='));
  if (option === undefined) return null;
  const seconds = option.includes('=') ? Number(option.split('=')[1]) : IDLE_SECONDS;
  if (!Number.isFinite(seconds) || seconds < 0) throw new Error(`${option} must be a number of seconds`);
  return seconds * 1000;
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--version')) {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  // Standard error is the log file that the client which started the helper has opened.
  const logger = pino({ name: 'bough-helper' }, pino.destination({ fd: 2, sync: true }));
  // Agents hang on this process: a fault in the answer to one request must not end them.
  process.on('unhandledRejection', (error) => logger.error({ err: error }, 'unhandled rejection'));
  process.on('uncaughtException', (error) => logger.error({ err: error }, 'uncaught exception'));
  try {
    const ran = await runDaemon({
      environment: process.env,
      version: version(),
      log: (message) => logger.info(message),
      idleExitMs: idleExitMs(args),
    });
    if (!ran) process.stderr.write('bough-helper: another one runs already\n');
    return 0;
  } catch (error) {
    const fix = error instanceof BoughError && error.detail.fix !== undefined ? ` ${error.detail.fix}` : '';
    process.stderr.write(`bough-helper: ${error instanceof Error ? error.message : String(error)}${fix}\n`);
    return 1;
  }
}

process.exit(await main(process.argv.slice(2)));
