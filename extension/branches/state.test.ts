import { expect, test } from 'vitest';
import type { Branch, CheckRun } from '../../helper/protocol/rpc.js';
import { checkVerdict, contextValue, describe as inWords } from './state.js';

function branch(changes: Partial<Branch> = {}): Branch {
  return {
    id: '0123abcd.bxyz',
    parent: 'base',
    name: 'shell-1',
    group: 0,
    exclusive: false,
    createdMs: 0,
    children: [],
    edits: 7,
    workspace: '/home/me/orders',
    person: 'running',
    fileState: 'live',
    hint: '',
    agent: 'shell',
    machine: 'process',
    exitCode: null,
    note: null,
    changes: 0,
    checks: null,
    overlaps: 0,
    ...changes,
  };
}

function checks(changes: Partial<CheckRun> = {}): CheckRun {
  return {
    command: 'npm test',
    state: 'passed',
    exitCode: 0,
    startedMs: 0,
    endedMs: 1,
    output: '',
    edits: 7,
    ...changes,
  };
}

test('a row says in words what its icon and badge show', () => {
  expect(inWords(branch())).toBe('running · no changes');
  expect(
    inWords(
      branch({
        hint: 'smallest change\n(looking at a.js:3)',
        person: 'stopped',
        exitCode: 0,
        changes: 1,
        checks: checks(),
        overlaps: 2,
      }),
    ),
  ).toBe('smallest change · finished · 1 change · checks passed · 2 overlaps');
  expect(inWords(branch({ person: 'failed', exitCode: 3, changes: null }))).toBe('failed with 3');
  expect(inWords(branch({ person: 'failed', note: 'Did not start' }))).toBe('failed · no changes');
  expect(inWords(branch({ person: 'stopped', exitCode: 2 }))).toBe('ended with 2 · no changes');
});

test('what became of a branch matters more than what its agent does', () => {
  expect(inWords(branch({ fileState: 'superseded', person: 'superseded', exitCode: 0, changes: 3 }))).toBe(
    'superseded · 3 changes',
  );
});

test('checks of an earlier state of the files are not a verdict', () => {
  expect(checkVerdict(branch({ checks: checks({ edits: 6 }) }))).toBe('stale');
  expect(inWords(branch({ checks: checks({ state: 'failed', edits: 6 }) }))).toContain(
    'checks failed before later edits',
  );
  expect(checkVerdict(branch({ checks: checks({ state: 'running', edits: 6 }) }))).toBe('running');
});

test('menus find out by words what can be done', () => {
  expect(contextValue(branch({ changes: 2, folder: '/run/x' }))).toBe('branch live running session changed mounted');
  expect(contextValue(branch({ parent: 'b2', fileState: 'committed', person: 'committed' }))).toBe('branch committed');
});
