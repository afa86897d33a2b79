// Where the example agent `repair` and the Node that runs it are on this machine. Used by its preset.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { findProgram, type Environment } from './find-program.js';

/** examples/agents/repair/repair.mjs as seen from dist/ (the bundle) and from helper/agents/ (a checkout). */
export function repairProgram(moduleFile = fileURLToPath(import.meta.url)): string {
  const here = dirname(moduleFile);
  const candidates = [join(here, '..'), join(here, '..', '..')].map((root) =>
    join(root, 'examples', 'agents', 'repair', 'repair.mjs'),
  );
  return candidates.find((path) => existsSync(path)) ?? candidates.at(-1) ?? moduleFile;
}

/**
 * A real Node: the helper's own program may be an editor's Electron, which is Node only in name. Links are resolved
 * because a branch may show the target and not the link.
 */
export function nodeProgram(environment: Environment): string {
  const found = findProgram('node', environment) ?? process.execPath;
  try {
    return realpathSync(found);
  } catch {
    return found;
  }
}
