import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isWithin, privateEntries, systemBinds, toolChain } from './host-view.js';

let root = '';
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'bough-host-')));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function folder(...names: string[]): string {
  const path = join(root, ...names);
  mkdirSync(path, { recursive: true, mode: 0o755 });
  return path;
}

describe('what of the host shows', () => {
  it('is the system, with links as links', () => {
    const at = folder('system');
    folder('system', 'usr', 'bin');
    folder('system', 'etc');
    folder('system', 'home');
    symlinkSync('usr/bin', join(at, 'bin'));
    expect(systemBinds(at)).toEqual([
      { kind: 'read-only', path: join(at, 'usr') },
      { kind: 'symlink', path: join(at, 'bin'), target: 'usr/bin' },
      { kind: 'read-only', path: join(at, 'etc') },
    ]);
  });

  it('is nothing that not everyone may read, however deep', () => {
    const etc = folder('etc');
    const file = (path: string, mode: number) => {
      writeFileSync(join(etc, path), '');
      chmodSync(join(etc, path), mode);
    };
    file('passwd', 0o644);
    file('shadow', 0o640);
    folder('etc', 'ssl', 'certs');
    file('ssl/key.pem', 0o600);
    chmodSync(folder('etc', 'ssl', 'private'), 0o710);
    symlinkSync('shadow', join(etc, 'link'));
    expect(privateEntries(etc).sort((a, b) => a.path.localeCompare(b.path))).toEqual([
      { path: join(etc, 'shadow'), directory: false },
      { path: join(etc, 'ssl/key.pem'), directory: false },
      { path: join(etc, 'ssl/private'), directory: true },
    ]);
    expect(privateEntries(join(root, 'not there'))).toEqual([]);
  });
});

describe('toolChain', () => {
  it('is the folders on PATH outside of the system, with what a Node there needs', () => {
    const home = folder('home');
    const bin = folder('home', 'apps', 'node', 'bin');
    writeFileSync(join(bin, 'node'), '');
    folder('home', 'apps', 'node', 'lib', 'node_modules');
    folder('home', 'apps', 'node', 'share');
    const path = ['/usr/bin', bin, join(root, 'missing'), 'relative', ''].join(':');
    expect(toolChain({ PATH: path }, home)).toEqual([bin, join(home, 'apps/node/lib/node_modules')]);
  });

  it('brings what a version manager keeps behind its door, and not the credentials beside it', () => {
    const home = folder('person');
    folder('person', '.nvm', 'versions', 'node', 'v22', 'bin');
    folder('person', '.cargo', 'bin');
    folder('person', '.rustup', 'toolchains');
    const path = [join(home, '.nvm/versions/node/v22/bin'), join(home, '.cargo/bin')].join(':');
    expect(toolChain({ PATH: path }, home)).toEqual([
      join(home, '.cargo/bin'),
      join(home, '.nvm'),
      join(home, '.rustup/toolchains'),
    ]);
  });

  it('is never the home or a folder above it', () => {
    const home = folder('someone');
    expect(toolChain({ PATH: `${home}:${root}:/` }, home)).toEqual([]);
  });
});

describe('isWithin', () => {
  it('tells a folder from one whose name begins alike', () => {
    expect(isWithin('/a/b', '/a')).toBe(true);
    expect(isWithin('/a', '/a')).toBe(true);
    expect(isWithin('/ab', '/a')).toBe(false);
    expect(isWithin('/a', '/')).toBe(true);
  });
});
