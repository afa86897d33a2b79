import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyHunk, hunksOf, revertHunk } from './hunks.js';

const before = Array.from({ length: 30 }, (_, n) => `line ${n}\n`).join('');
const after = before
  .replace('line 3\n', 'line three\n')
  .replace('line 20\n', '')
  .replace('line 25\n', 'line 25\nnew\n');

test('each change far enough from the next is a hunk of its own, with its place in the new text', () => {
  const hunks = hunksOf(before, after);
  expect(hunks.map(({ newStart, newLines, oldLines }) => ({ newStart, newLines, oldLines }))).toEqual([
    { newStart: 3, newLines: 1, oldLines: ['line 3'] },
    { newStart: 20, newLines: 5 + 1, oldLines: ['line 20', 'line 21', 'line 22', 'line 23', 'line 24', 'line 25'] },
  ]);
});

test('one hunk is accepted alone, another is reverted alone', () => {
  const [first, second] = hunksOf(before, after);
  if (!first || !second) throw new Error('two hunks expected');
  expect(applyHunk(before, first)).toBe(before.replace('line 3\n', 'line three\n'));
  expect(revertHunk(after, first)).toBe(after.replace('line three\n', 'line 3\n'));
  expect(revertHunk(after, second)).toBe(before.replace('line 3\n', 'line three\n'));
});

test('a hunk whose place was changed by somebody else is refused', () => {
  const [first] = hunksOf(before, after);
  if (!first) throw new Error('a hunk expected');
  expect(applyHunk(before.replace('line 3\n', 'mine\n'), first)).toBeUndefined();
});

test('CRLF and a missing last newline survive', () => {
  const old = 'a\r\nb\r\nc';
  const now = 'a\r\nB\r\nc';
  const [hunk] = hunksOf(old, now);
  if (!hunk) throw new Error('a hunk expected');
  expect(applyHunk(old, hunk)).toBe(now);
  expect(revertHunk(now, hunk)).toBe(old);
});

test('accepting all hunks in order gives the new text, reverting all gives the old one', () => {
  const text = fc
    .array(fc.constantFrom('a\n', 'b\n', 'c\n', 'd\r\n', '\n'), { maxLength: 40 })
    .map((lines) => lines.join(''));
  fc.assert(
    fc.property(text, text, (old, now) => {
      let forward: string | undefined = old;
      // From the last to the first, so that places of those before do not move.
      for (const hunk of [...hunksOf(old, now)].reverse())
        forward = forward === undefined ? undefined : applyHunk(forward, hunk);
      expect(forward).toBe(now);
      let back: string | undefined = now;
      for (const hunk of [...hunksOf(old, now)].reverse())
        back = back === undefined ? undefined : revertHunk(back, hunk);
      expect(back).toBe(old);
    }),
    { numRuns: 200 },
  );
});
