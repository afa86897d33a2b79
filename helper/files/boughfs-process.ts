// The life of one boughfs: where its program is, starting it so that it outlives the helper, waiting until it is ready, ending
// it. Used by store-link.ts.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BoughError } from '../protocol/failure.js';
import { privateFolder, type Places, type StorePlaces } from '../state/places.js';

/** Recovery of a long log may take its time on a slow disk. */
const READY_DEADLINE_MS = 120_000;
const LOG_LIMIT = 4 * 1024 * 1024;

export interface BoughfsOptions {
  readonly folder: string;
  readonly at: StorePlaces;
  readonly places: Places;
  /** Globs relative to the base that no branch shows. */
  readonly hide: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

/** boughfs: named by BOUGH_BOUGHFS, beside the bundle, or in the checkout's build/release/. */
export function findBoughfs(environment: NodeJS.ProcessEnv, here = dirname(fileURLToPath(import.meta.url))): string {
  const named = environment['BOUGH_BOUGHFS'];
  const candidates = [
    ...(named === undefined || named === '' ? [] : [named]),
    join(here, 'boughfs'),
    join(here, '..', 'build', 'release', 'boughfs'),
    join(here, '..', '..', 'build', 'release', 'boughfs'),
  ];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) {
    throw new BoughError(
      'E_NO_BOUGHFS',
      `The file server boughfs was not found (looked at ${candidates.join(', ')}).`,
      {
        fix: 'Build it with: npm run build',
      },
    );
  }
  return found;
}

/** Starts boughfs for a store and returns when it listens and its mounts are back. Throws E_STORE_BUSY when one runs already. */
export async function startBoughfs(options: BoughfsOptions): Promise<void> {
  const { at, folder, places } = options;
  const program = findBoughfs(options.environment);
  if (!existsSync(folder)) throw baseGone(folder);
  privateFolder(places.runtime);
  for (const path of [at.store, at.mounts, at.branches]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const log = openSync(at.log, 'a', 0o600);
  if (statSync(at.log).size > LOG_LIMIT) truncateSync(at.log, 0);
  const logStart = statSync(at.log).size;
  let child: ChildProcess;
  try {
    child = spawn(
      program,
      [
        ...['--store', at.store, '--base', folder, '--socket', at.socket],
        // A workspace may hold the person's home and with it this very store.
        ...['--never', places.state, '--never', places.runtime],
        ...options.hide.flatMap((glob) => ['--hide', glob]),
        ...(options.environment['BOUGH_FAIL_AT'] === undefined ? [] : ['--test-fail-points']),
      ],
      // Its log goes to a file, not to a pipe of ours: it must be able to write when the helper is gone.
      { cwd: '/', env: options.environment, detached: true, stdio: ['ignore', 'pipe', log] },
    );
  } finally {
    closeSync(log);
  }
  const failure = await untilReady(child);
  child.stdout?.destroy();
  child.unref();
  if (failure === null) return;
  const said = readFileSync(at.log).subarray(logStart).toString('utf8').trim().split('\n').at(-1) ?? '';
  throw startProblem(failure.code, failure.error?.message ?? said, folder, at);
}

/** Null once it has said `ready`; else how it ended before. */
function untilReady(child: ChildProcess): Promise<{ readonly code: number | null; readonly error?: Error } | null> {
  return new Promise((resolve) => {
    const deadline = setTimeout(() => child.kill('SIGTERM'), READY_DEADLINE_MS);
    const settle = (result: { readonly code: number | null; readonly error?: Error } | null) => {
      clearTimeout(deadline);
      resolve(result);
    };
    let seen = '';
    child.stdout?.setEncoding('utf8');
    child.stdout?.on('data', (text: string) => {
      seen += text;
      if (/^ready$/m.test(seen)) settle(null);
    });
    child.once('exit', (code) => settle({ code }));
    child.once('error', (error) => settle({ code: null, error }));
  });
}

function baseGone(folder: string): BoughError {
  return new BoughError('E_BASE_GONE', `The folder ${folder} is not there.`, {
    fix: 'Mount it or put it back; its branches are kept and come back with it.',
  });
}

function startProblem(code: number | null, said: string, folder: string, at: StorePlaces): BoughError {
  const because = said === '' ? '' : ` It said: ${said}`;
  if (code === 3) {
    return new BoughError('E_STORE_BUSY', `Another boughfs has the store of ${folder}.${because}`, {
      fix: 'Wait until it has ended, or end it: fuser ' + join(at.store, 'lock'),
    });
  }
  if (code === 4) return baseGone(folder);
  if (code === 5) {
    return new BoughError('E_STORE_DAMAGED', `The store of ${folder} cannot be opened.${because}`, {
      fix: `Keep a copy of ${at.store}, and see ${at.log}.`,
    });
  }
  return new BoughError('E_BOUGHFS_START', `boughfs did not start for ${folder} (status ${String(code)}).${because}`, {
    fix: `See ${at.log} and run: bough doctor`,
  });
}
