// Small looks at files and programs that must not throw. Used by the checks of this folder.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The text of a file, or undefined when it cannot be read. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

export interface Ended {
  /** Null: it did not start, or a signal ended it. */
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; one that hangs is ended, with status null. */
export function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { env, timeout: 30_000, killSignal: 'SIGKILL', encoding: 'utf8' } as const;
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      resolve({ status, stdout, stderr: stderr === '' && error !== null ? error.message : stderr });
    });
    child.stdin?.end();
  });
}
