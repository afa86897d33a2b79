import { expect, it } from 'vitest';
import { diskFailure } from './disk-failure.js';

const failed = (fields: object) => Object.assign(new Error('it failed'), fields);

it('tells a full disk, a quota and a read-only disk, by Node’s names and by lmdb’s numbers', () => {
  expect(diskFailure(failed({ code: 'ENOSPC', path: '/state/x' }))).toMatchObject({ code: 'E_NO_SPACE' });
  expect(diskFailure(failed({ code: 'ENOSPC', path: '/state/x' }))?.message).toContain('/state/x');
  expect(diskFailure(failed({ code: 28 }))?.code).toBe('E_NO_SPACE');
  expect(diskFailure(failed({ code: 'EDQUOT' }))?.message).toContain('quota');
  expect(diskFailure(failed({ code: 30 }))?.code).toBe('E_READ_ONLY');
  for (const { detail } of [diskFailure(failed({ code: 28 })), diskFailure(failed({ code: 'EROFS' }))].flatMap(
    (error) => error ?? [],
  )) {
    expect(detail.fix).toMatch(/repeat it/);
  }
});

it('leaves everything else alone', () => {
  expect(diskFailure(failed({ code: 'ENOENT' }))).toBeNull();
  expect(diskFailure(new Error('no code'))).toBeNull();
  expect(diskFailure('ENOSPC')).toBeNull();
});
