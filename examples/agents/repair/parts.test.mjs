// The agent's parts without a process: lexer, changes, functions near a test, order. Run by `node --test` here.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { distances, functionsOf, wordsOfTest } from './functions.mjs';
import { mutationsOf } from './mutations.mjs';
import { ordered, strategyOf } from './strategy.mjs';
import { tokenize } from './tokens.mjs';

const texts = (/** @type {string} */ source) => tokenize(source).map(({ text }) => text);

/** Every source that a change leads to. */
const changed = (/** @type {string} */ source) =>
  mutationsOf(source).map(({ start, end, after }) => source.slice(0, start) + after + source.slice(end));

test('the lexer keeps strings, templates, comments and regular expressions whole', () => {
  assert.deepEqual(texts('a < b // c < d\n/* > */ + "x < \\" y"'), ['a', '<', 'b', '+', '"x < \\" y"']);
  assert.deepEqual(texts('`a ${b < `${c}` + "}"} d` + 1'), ['`a ${b < `${c}` + "}"} d`', '+', '1']);
  assert.deepEqual(texts('x = /[/<]>/g.test(y) / 2'), ['x', '=', '/[/<]>/g', '.', 'test', '(', 'y', ')', '/', '2']);
  assert.deepEqual(texts('return /a/ ? a?.b ?? 1_000 : a >>>= 2'), [
    ...['return', '/a/', '?', 'a', '?.', 'b', '??', '1_000', ':', 'a', '>>>=', '2'],
  ]);
});

test('changes are one place each, and none is in a string', () => {
  assert.deepEqual(changed('f("1 < 2")'), []);
  assert.deepEqual(changed('a === b'), ['a !== b']);
  assert.deepEqual(changed('a && !b').sort(), ['a && b', 'a || !b']);
  assert.deepEqual(changed('if (a) b()'), ['if (!(a)) b()']);
  assert.deepEqual(changed('Math.floor(x)'), ['Math.ceil(x)', 'Math.round(x)']);
  assert.deepEqual(changed('x = 0'), ['x = 1']);
  assert.deepEqual(changed('x = -1').sort(), ['x = -0', 'x = -2']);
  const boundaries = changed('a.length + 1');
  for (const expected of ['a.length ', '(a.length - 1) + 1', 'a.length - 1', 'a.length + 2']) {
    assert.ok(boundaries.includes(expected), `${expected} in ${boundaries.join(' | ')}`);
  }
});

test('functions near a failing test come first', () => {
  const source = 'export function a(x) { return b(x) }\nconst b = (x) => { return x }\nfunction c() { }';
  const functions = functionsOf(source);
  assert.deepEqual(
    functions.map(({ name, line }) => [name, line]),
    [
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ],
  );
  const test = "import x;\ntest('one', () => {\n  equal(a(1), 2);\n});\ntest('two', () => { c() });";
  const near = distances(functions, new Set(wordsOfTest(test, 2)));
  assert.deepEqual(
    functions.map((at) => near.get(at)),
    [0, 1, undefined],
  );
});

test('a hint chooses the order, a seed decides among equals', () => {
  const candidates = mutationsOf('if (a <= b) return n * 10 + 1;').map((at) => ({ ...at, file: 'x', distance: 0 }));
  const first = (/** @type {string} */ hint) => ordered(candidates, strategyOf(hint, undefined))[0]?.kind;
  assert.equal(first(''), 'comparison');
  assert.equal(first('constants first'), 'constant');
  assert.equal(first('negate things'), 'negation');
  assert.equal(first('off-by-one'), 'off-by-one');
  const order = (/** @type {number} */ seed) =>
    ordered(candidates, strategyOf('random', seed))
      .map(({ start, after }) => `${start}${after}`)
      .join();
  assert.equal(order(7), order(7));
  assert.notEqual(order(7), order(8));
  assert.equal(strategyOf('random seed 7', undefined).seed, 7);
  assert.equal(strategyOf('random seed 7', 9).seed, 9);
});
