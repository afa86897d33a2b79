import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { selfContained } from './vsix-readme.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

test('pictures travel inside, links into the repository become words, the web stays', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bough-readme-'));
  try {
    writeFileSync(join(folder, 'tree.png'), 'picture');
    const text = '![The tree](tree.png) [how](docs/how.md) [web](https://example.com/a) [below](#below)';
    expect(selfContained(text, folder)).toBe(
      '![The tree](data:image/png;base64,cGljdHVyZQ==) how [web](https://example.com/a) [below](#below)',
    );
    expect(() => selfContained('![gone](gone.png)', folder)).toThrow(/gone\.png is missing/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the README of this repository has all its pictures and shows no path of the checkout', () => {
  const packed = selfContained(readFileSync(join(root, 'README.md'), 'utf8'), root);
  expect(packed).toContain('](data:image/png;base64,');
  expect(packed).not.toMatch(/\]\((?!https?:|data:|#)/);
});
