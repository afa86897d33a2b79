// Which branch a person means by the first letters of its id or name. Used by every command that works on a branch.
import { BoughError } from '../api/client.js';
import type { Branch } from '../protocol/rpc.js';
import { plainText } from './path-text.js';

/**
 * @param wanted the whole or the beginning of an id, of the part of an id after its dot, or of a name; undefined: the only one
 * @throws E_NO_BRANCH, E_AMBIGUOUS
 */
export function pickBranch(branches: readonly Branch[], wanted: string | undefined): Branch {
  if (wanted === undefined) return onlyOne(branches);
  const tests: readonly ((branch: Branch) => boolean)[] = [
    ({ id }) => id === wanted,
    ({ name }) => name === wanted,
    ({ id }) => shortId(id) === wanted,
    ({ id, name }) => [id, shortId(id), name].some((text) => text.startsWith(wanted)),
  ];
  for (const test of tests) {
    const [found, second, ...more] = branches.filter(test);
    if (found && !second) return found;
    if (found && second) throw ambiguous(`"${plainText(wanted)}" may be`, [found, second, ...more]);
  }
  throw new BoughError('E_NO_BRANCH', `No branch has an id or a name that begins with "${plainText(wanted)}".`, {
    fix: 'See the branches with: bough ls',
  });
}

/** Ids of the helper are `<workspace>.<branch>`; within one folder the second part is enough. */
export function shortId(id: string): string {
  return id.slice(id.indexOf('.') + 1);
}

/** A branch in one word and its id. */
export function branchText({ id, name }: Branch): string {
  return name === '' ? id : `${plainText(name)} (${id})`;
}

function onlyOne(branches: readonly Branch[]): Branch {
  const live = branches.filter(({ fileState }) => fileState === 'live');
  const [found, second] = live;
  if (!found) throw new BoughError('E_NO_BRANCH', 'This folder has no branch.', { fix: 'Make one with: bough start' });
  if (second) throw ambiguous('Say which branch:', live);
  return found;
}

function ambiguous(what: string, branches: readonly Branch[]): BoughError {
  return new BoughError('E_AMBIGUOUS', `${what} ${branches.map(branchText).join(', ')}.`, {
    fix: 'Give more letters of its id or name.',
  });
}
