// The lock file's check names what it must and lets a good one pass.
import { expect, it } from 'vitest';
import { lockfileProblems } from './check-lockfile.mjs';

const good = { packages: { '': {}, 'node_modules/a': { integrity: 'sha512-x' }, 'node_modules/b': { link: true } } };

it('lets a lock file without hosts pass', () => {
  expect(lockfileProblems(good, { dependencies: { a: '1.2.3' }, devDependencies: { b: '1.0.0-rc.1' } })).toEqual([]);
});

it('names hosts, missing digests and loose versions', () => {
  const lock = { packages: { 'node_modules/a': { resolved: 'https://registry.example/a.tgz' } } };
  expect(lockfileProblems(lock, { dependencies: { a: '^1.2.3' } })).toEqual([
    'node_modules/a: resolved names a place: https://registry.example/a.tgz',
    'node_modules/a: no integrity',
    'package.json: a is not pinned: ^1.2.3',
  ]);
});
