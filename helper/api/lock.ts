// One helper per person: a lock that the kernel drops when its holder dies, however that happens. Used by daemon.ts.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, ftruncateSync, openSync, writeSync } from 'node:fs';
import { BoughError } from '../protocol/failure.js';

/**
 * Takes the lock for as long as this process lives; false when another helper has it. flock(2) belongs to the open file, which
 * flock(1) shares with us: it locks and ends, and the lock stays with our descriptor.
 */
export function takeLock(path: string): boolean {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  const { status, error } = spawnSync('flock', ['--exclusive', '--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', fd],
  });
  if (error) {
    closeSync(fd);
    throw new BoughError('E_HELPER_START', `flock(1) could not be run: ${error.message}.`, {
      fix: 'sudo apt-get install util-linux',
    });
  }
  if (status !== 0) {
    closeSync(fd);
    return false;
  }
  ftruncateSync(fd, 0);
  writeSync(fd, `${process.pid}\n`, 0);
  return true;
}
