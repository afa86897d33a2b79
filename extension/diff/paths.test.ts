import { expect, test } from 'vitest';
import { baseName, folderName, pathKey, pathLabel, relativeInside } from './paths.js';

test('names that are not UTF-8 are shown, and never look like another name', () => {
  const latin = { b64: Buffer.from('docs/caf\xe9.txt', 'latin1').toString('base64') };
  expect(pathLabel(latin)).toBe('docs/caf\\xe9.txt');
  expect(baseName(latin)).toBe('caf\\xe9.txt');
  expect(folderName(latin)).toBe('docs');
  expect(pathKey(latin)).not.toBe(pathKey('docs/caf\\xe9.txt'));
});

test('a name stays on one line and in its own direction', () => {
  expect(pathLabel('new\nline')).toBe('new\\x0aline');
  expect(pathLabel('evil\u202etxt.js')).toBe('evil\\u{202e}txt.js');
  expect(pathLabel('größe/🌳')).toBe('größe/🌳');
  expect(baseName('a/new\nline')).toBe('new\\x0aline');
});

test('a file is inside a folder, or it is not', () => {
  expect(relativeInside('/a/b', '/a/b/c/d')).toBe('c/d');
  expect(relativeInside('/a/b', '/a/b/..c')).toBe('..c');
  for (const outside of ['/a/b', '/a', '/a/bc', '/x']) expect(relativeInside('/a/b', outside)).toBeUndefined();
});

test('a file at the top has no folder part', () => {
  expect(folderName('README.md')).toBe('');
});
