// What may be done with a branch in which state, and how a state is put in words. Pure; used by tree, commands and status bar.
import type { Branch } from '../../helper/protocol/rpc.js';

export const BASE = 'base';

export function isSession(branch: Branch): boolean {
  return branch.parent === BASE;
}

/** An agent works in it now. */
export function isActive(branch: Branch): boolean {
  return branch.person === 'running' || branch.person === 'paused' || branch.person === 'committing';
}

/** Its files may be changed, committed and branched. */
export function isLive(branch: Branch): boolean {
  return branch.fileState === 'live';
}

/** For `when` clauses on tree items: `branch live running changed`, matched by word. */
export function contextValue(branch: Branch): string {
  const words = ['branch', branch.fileState, branch.person];
  if (isSession(branch)) words.push('session');
  if (branch.changes === null || branch.changes > 0) words.push('changed');
  if (branch.folder !== undefined) words.push('mounted');
  return [...new Set(words)].join(' ');
}

export type CheckVerdict = 'none' | 'running' | 'passed' | 'failed' | 'cancelled' | 'stale';

export function checkVerdict(branch: Branch): CheckVerdict {
  if (!branch.checks) return 'none';
  if (branch.checks.state !== 'running' && branch.checks.edits !== branch.edits) return 'stale';
  return branch.checks.state;
}

export function checkWords(branch: Branch): string | undefined {
  switch (checkVerdict(branch)) {
    case 'none':
      return undefined;
    case 'running':
      return 'checks running';
    case 'passed':
      return 'checks passed';
    case 'failed':
      return 'checks failed';
    case 'cancelled':
      return 'checks cancelled';
    case 'stale':
      return `checks ${branch.checks?.state ?? ''} before later edits`;
  }
}

export function changeWords(changes: number | null): string | undefined {
  if (changes === null) return undefined;
  if (changes === 0) return 'no changes';
  return changes === 1 ? '1 change' : `${changes} changes`;
}

export function stateWords(branch: Branch): string {
  // Of a branch that is no longer live, that is what matters, whatever its agent does.
  if (branch.fileState !== 'live') return branch.fileState;
  if (branch.person === 'stopped' && branch.exitCode !== null) {
    return branch.exitCode === 0 ? 'finished' : `ended with ${branch.exitCode}`;
  }
  if (branch.person === 'failed' && branch.exitCode !== null) return `failed with ${branch.exitCode}`;
  return branch.person;
}

/** Undefined where there are none, or where they do not matter any more. */
export function overlapWords({ overlaps, fileState }: Branch): string | undefined {
  if (overlaps === 0 || fileState !== 'live') return undefined;
  return overlaps === 1 ? '1 file also changed by a sibling' : `${overlaps} files also changed by a sibling`;
}

/** What stands after a branch's name: the hint first, then its state, changes, checks and overlaps. */
export function describe(branch: Branch): string {
  const words = [
    branch.hint === '' ? undefined : branch.hint.split('\n', 1)[0],
    stateWords(branch),
    changeWords(branch.changes),
    checkWords(branch),
    overlapWords(branch) === undefined
      ? undefined
      : branch.overlaps === 1
        ? '1 overlap'
        : `${branch.overlaps} overlaps`,
  ];
  return words.filter((word) => word !== undefined).join(' · ');
}
