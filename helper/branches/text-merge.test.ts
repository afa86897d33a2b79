import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asText, lines, mergeText, mergeValue } from './text-merge.js';

const base = 'one\ntwo\nthree\nfour\nfive\nsix\n';

describe('mergeText', () => {
  it('takes both sides where they changed other lines', () => {
    const ours = base.replace('one', 'ONE');
    const theirs = base.replace('six', 'SIX');
    expect(mergeText(base, ours, theirs)).toBe('ONE\ntwo\nthree\nfour\nfive\nSIX\n');
  });

  it('refuses where both changed the same line', () => {
    expect(mergeText(base, base.replace('two', 'a'), base.replace('two', 'b'))).toBeNull();
  });

  it('takes the same change once', () => {
    const both = base.replace('two', '2');
    expect(mergeText(base, both, both)).toBe(both);
    expect(mergeText(base, `${both}ours\n`, both)).toBe(`${both}ours\n`);
  });

  it('keeps carriage returns and a missing last newline', () => {
    const dos = 'a\r\nb\r\nc\r\nd\r\ne';
    expect(mergeText(dos, dos.replace('a', 'A'), dos.replace(/e$/, 'E'))).toBe('A\r\nb\r\nc\r\nd\r\nE');
  });

  it('refuses a file whose line endings changed under edits of the other side', () => {
    const unix = 'a\nb\nc\n';
    expect(mergeText(unix, unix.replaceAll('\n', '\r\n'), 'a\nB\nc\n')).toBeNull();
  });

  it('gives one side back when the other did nothing, and never mixes in what nobody wrote', () => {
    const text = fc
      .array(fc.constantFrom('a\n', 'b\n', 'c\n', 'd\n'), { maxLength: 12 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, text, (point, ours, theirs) => {
        expect(mergeText(point, ours, point)).toBe(ours);
        expect(mergeText(point, point, theirs)).toBe(theirs);
        const merged = mergeText(point, ours, theirs);
        const known = new Set([...lines(ours), ...lines(theirs)]);
        for (const line of lines(merged ?? '')) expect(known.has(line)).toBe(true);
        // Whoever is called ours makes no difference.
        expect(mergeText(point, theirs, ours)).toBe(merged);
      }),
    );
  });
});

describe('mergeValue', () => {
  it('is the change of the only side that made one', () => {
    expect(mergeValue(1, 2, 1)).toBe(2);
    expect(mergeValue(1, 1, 3)).toBe(3);
    expect(mergeValue(1, 4, 4)).toBe(4);
    expect(mergeValue(1, 2, 3)).toBeUndefined();
  });
});

describe('asText', () => {
  it('is null for what a line merge would damage', () => {
    expect(asText(Buffer.from('grün\n'))).toBe('grün\n');
    expect(asText(Buffer.from([0x61, 0xff, 0x0a]))).toBeNull();
    expect(asText(Buffer.from('a\0b'))).toBeNull();
  });
});
