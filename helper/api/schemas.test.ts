import { describe, expect, it } from 'vitest';
import { schemas } from './schemas.js';

describe('requests at the edge', () => {
  it('keep what belongs to them and drop the rest', () => {
    const params = { branch: 'w.b', paths: ['a', { b64: '/w==' }], workDoneToken: 't', evil: 1 };
    expect(schemas['bough/commit'].parse(params)).toEqual({ branch: 'w.b', paths: ['a', { b64: '/w==' }] });
    expect(schemas['bough/shutdown'].parse({ workDoneToken: 't' })).toEqual({});
  });

  it.each([
    ['bough/start', { folder: '/a' }],
    ['bough/start', { folder: '/a', agent: 'shell', machine: 'cloud' }],
    ['bough/branch', { branch: 'w.b', count: 0 }],
    ['bough/branch', { branch: 'w.b', count: 1e9 }],
    ['bough/branch', { branch: 'w.b', count: 1.5 }],
    ['bough/exec', { branch: 'w.b', command: [] }],
    ['bough/exec', { branch: 'w.b', command: 'ls' }],
    ['bough/read', { branch: 'w.b', side: 'left', path: 'a' }],
    ['bough/read', { branch: 'w.b', side: 'branch', path: { b64: 'not base64!' } }],
    ['bough/resolve', { branch: 'w.b', path: 'a', take: 'content', data: '***' }],
    ['bough/rename', { branch: 'w.b', name: 'two\nlines' }],
    ['bough/rename', { branch: 'w.b', name: '' }],
    ['bough/terminal/resize', { terminal: 'w.b', rows: 0, columns: 80 }],
    ['bough/commit', null],
  ] as const)('%s refuses %j', (method, params) => {
    expect(schemas[method].safeParse(params).success).toBe(false);
  });
});
