// Looks a program up on PATH as execvp(3) would. Used by the agents' presets and by the doctor.
import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Absolute path of the program, or undefined when it is not there or may not be executed. */
export function findProgram(program: string, environment: Environment): string | undefined {
  if (program === '') return undefined;
  if (program.includes('/')) return isAbsolute(program) && executable(program) ? program : undefined;
  const folders = (environment['PATH'] ?? '').split(':').filter((folder) => isAbsolute(folder));
  return folders.map((folder) => join(folder, program)).find((path) => executable(path));
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
