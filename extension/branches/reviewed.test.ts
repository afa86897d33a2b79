import { expect, test } from 'vitest';
import type { Change } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import type { Helper } from '../connection/helper.js';
import { Reviewed, type Memory } from './reviewed.js';

function memory(): Memory & { readonly kept: Map<string, unknown> } {
  const kept = new Map<string, unknown>();
  return {
    kept,
    get: (key) => kept.get(key),
    update: (key, value) => {
      if (value === undefined) kept.delete(key);
      else kept.set(key, value);
      return Promise.resolve();
    },
  };
}

const branch = (edits: number) => ({ id: 'b1', workspace: '/shop', edits }) as Branch;
const change = (path: string) => ({ path, kind: 'modified' }) as Change;

/** A helper whose files have these modification times. */
function helperWith(times: Record<string, number>): Pick<Helper, 'request'> {
  const request = (_: string, { path }: { path: string }) =>
    Promise.resolve({ type: 'file', mode: 0o644, size: 1, mtimeMs: times[path] });
  return { request: request as unknown as Helper['request'] };
}

test('a tick holds until its file changes, and those of other files stay', async () => {
  const times: Record<string, number> = { a: 1, b: 1 };
  const reviewed = new Reviewed(helperWith(times), memory());
  const changes = [change('a'), change('b'), change('c')];
  for (const path of ['a', 'b']) await reviewed.mark(branch(1), change(path), true);
  expect([...(await reviewed.stillSo(branch(1), changes, true))]).toEqual(['a', 'b']);
  times['a'] = 2;
  expect([...(await reviewed.stillSo(branch(2), changes, true))]).toEqual(['b']);
  expect(reviewed.count(branch(2))).toBe(1);
  times['a'] = 1;
  expect([...(await reviewed.stillSo(branch(3), changes, true))]).toEqual(['b']);
});

test('a tick is taken away by the person, and of a file that is as it was at first', async () => {
  const reviewed = new Reviewed(helperWith({ a: 1, b: 1 }), memory());
  await reviewed.mark(branch(1), change('a'), true);
  await reviewed.mark(branch(1), change('b'), true);
  await reviewed.mark(branch(1), change('a'), false);
  expect([...(await reviewed.stillSo(branch(1), [change('a'), change('b')], true))]).toEqual(['b']);
  // Further pages are not loaded: nothing is known about b.
  expect([...(await reviewed.stillSo(branch(2), [change('a')], false))]).toEqual([]);
  expect(reviewed.count(branch(2))).toBe(1);
  await reviewed.stillSo(branch(3), [change('a')], true);
  expect(reviewed.count(branch(3))).toBe(0);
});

test('ticks survive a new window and go with their branch', async () => {
  const kept = memory();
  await new Reviewed(helperWith({ a: 1 }), kept).mark(branch(1), change('a'), true);
  const later = new Reviewed(helperWith({ a: 1 }), kept);
  expect([...(await later.stillSo(branch(1), [change('a')], true))]).toEqual(['a']);
  later.forgetDiscarded([branch(1)], ['/shop']);
  // The folder was closed in this window: the branch may be alive.
  later.forgetDiscarded([], []);
  expect(kept.kept.size).toBe(1);
  later.forgetDiscarded([branch(1)], ['/shop']);
  later.forgetDiscarded([], ['/shop']);
  expect(kept.kept.size).toBe(0);
});
