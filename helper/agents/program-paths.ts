// What of the host must be readable for a program on PATH to start: installers put only a link or a small script on PATH, and
// the program itself elsewhere (an npm prefix, a Python environment, a folder of versions). Used by the agents' presets.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { findProgram, type Environment } from './find-program.js';

/** Absolute paths, none of which holds the person's HOME; empty when the program is not there. */
export function programPaths(program: string, environment: Environment): string[] {
  const found = findProgram(program, environment);
  if (found === undefined) return [];
  const real = realPath(found);
  const home = environment['HOME'] ?? '/';
  const holdsHome = (path: string) => path === '/' || home === path || home.startsWith(`${path}/`);
  // Folders of PATH are readable anyhow. The folder of a link, not the link alone: bound by itself it would be a file, and a
  // script that looks for its modules beside its real place would look in the wrong one.
  return [...(program.includes('/') ? [dirname(found)] : []), installationOf(real)].filter(
    (path, index, all) => !holdsHome(path) && all.indexOf(path) === index,
  );
}

/** The folder that was installed: all of a `node_modules`, a whole Python environment; else the file alone. */
function installationOf(real: string): string {
  const modules = /^(.*?\/node_modules)\//.exec(real)?.[1];
  if (modules !== undefined) return modules;
  const environment = dirname(dirname(real));
  return existsSync(join(environment, 'pyvenv.cfg')) ? environment : real;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
