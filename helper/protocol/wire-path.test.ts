import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pathBytes, pathKey, quote, quotedPath, unquote, wirePath } from './wire-path.js';

const bytes = fc.uint8Array({ minLength: 0, maxLength: 40 }).map((array) => Buffer.from(array));

describe('paths of any bytes', () => {
  it('come back as they were, over the wire and through quotes', () => {
    fc.assert(
      fc.property(bytes, (path) => {
        expect(pathBytes(wirePath(path)).equals(path)).toBe(true);
        expect(unquote(quote(path)).equals(path)).toBe(true);
      }),
    );
  });

  it('may hold plain text of any language inside the quotes', () => {
    expect(unquote('"größe\\t🌳\\377"')).toEqual(Buffer.concat([Buffer.from('größe\t🌳'), Buffer.from([0xff])]));
    expect(unquote('größe')).toEqual(Buffer.from('größe'));
  });

  it('have one key, whichever way they are written', () => {
    expect(pathKey('grün')).toBe(pathKey({ b64: Buffer.from('grün').toString('base64') }));
    expect(wirePath(Buffer.from([0x66, 0xff]))).toEqual({ b64: 'Zv8=' });
  });

  it('are printed in one line, as git prints them', () => {
    expect(quotedPath('src/a b.ts')).toBe('src/a b.ts');
    expect(quotedPath('new\nline')).toBe('"new\\nline"');
    expect(quotedPath('grün')).toBe('"gr\\303\\274n"');
    expect(quotedPath('say "hi"\\')).toBe('"say \\"hi\\"\\\\"');
  });
});
