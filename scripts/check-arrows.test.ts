// The arrows hold on small invented files: what is allowed passes, what is not is named.
import { expect, it } from 'vitest';
import { brokenArrows, importsOf, partOf } from './check-arrows.mjs';

it('finds the part of a file by its longest prefix', () => {
  expect(partOf('helper/protocol/branch.ts')).toBe('helper/protocol/');
  expect(partOf('helper/branches/tree.ts')).toBe('helper/');
  expect(partOf('helper/main.ts')).toBe('helper/main');
  expect(partOf('README.md')).toBeUndefined();
});

it('sees every form of import and every quoted include', () => {
  const text = [
    "import { a } from './a.js';",
    "import type {\n  B,\n} from '../b.js';",
    "import './c.js';",
    "export * from './d.js';",
    "const e = await import('./e.js');",
    "// import { f } from './f.js'; is only talked about",
  ].join('\n');
  expect(importsOf('x.ts', text)).toEqual(['./a.js', '../b.js', './c.js', './d.js', './e.js']);
  expect(importsOf('x.cc', '#include <vector>\n#include "common/fd.h"\n')).toEqual(['common/fd.h']);
});

it('lets the extension use the protocol and the editor, and nothing else of the helper', () => {
  const path = 'extension/branches/tree.ts';
  expect(
    brokenArrows(path, "import * as vscode from 'vscode';\nimport { X } from '../../helper/protocol/x.js';"),
  ).toEqual([]);
  expect(brokenArrows(path, "import { X } from '../../helper/branches/x.js';")).toEqual([
    'extension/branches/tree.ts: extension/ may not use helper/ (../../helper/branches/x.js)',
  ]);
});

it('keeps the protocol free of everything', () => {
  expect(brokenArrows('helper/protocol/x.ts', "import { y } from './y.js';")).toEqual([]);
  expect(brokenArrows('helper/protocol/x.ts', "import { y } from '../state/y.js';")).toHaveLength(1);
});

it('keeps services from knowing their faces, and the helper from knowing the editor', () => {
  expect(brokenArrows('helper/branches/x.ts', "import { y } from '../api/rpc/y.js';")).toHaveLength(1);
  expect(brokenArrows('helper/api/rpc/x.ts', "import { y } from '../../branches/y.js';")).toEqual([]);
  expect(brokenArrows('helper/branches/x.ts', "import * as vscode from 'vscode';")).toEqual([
    'helper/branches/x.ts: helper/ may not import vscode',
  ]);
});

it('keeps the native parts apart', () => {
  expect(
    brokenArrows('native/branchfs/x.cc', '#include "common/fd.h"\n#include "branchfs/y.h"\n#include "z.h"\n'),
  ).toEqual([]);
  expect(brokenArrows('native/addon/x.cc', '#include "branchfs/y.h"\n')).toHaveLength(1);
  expect(brokenArrows('native/common/x.h', '#include "../branchfs/y.h"\n')).toHaveLength(1);
});
