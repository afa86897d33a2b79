// Which functions a failing test is about: those that it names, then those that these call. Used by search.mjs to try the
// likely places first.
import { closing } from './mutations.mjs';
import { tokenize } from './tokens.mjs';

/**
 * @typedef {object} FunctionSpan
 * @property {string} name
 * @property {number} start offset
 * @property {number} end
 * @property {number} line from 1
 * @property {ReadonlySet<string>} words every name in its body
 */

/**
 * Functions and methods of a source: `function name(…) {…}` and `name = (…) => {…}`.
 *
 * @param {string} source
 * @returns {FunctionSpan[]}
 */
export function functionsOf(source) {
  const tokens = tokenize(source);
  /** @type {FunctionSpan[]} */
  const found = [];
  tokens.forEach((token, index) => {
    const name =
      token.text === 'function' ? tokens[index + 1] : token.text === '=>' ? arrowName(tokens, index) : undefined;
    if (name?.type !== 'word') return;
    const open = tokens.findIndex((at, place) => place > index && at.text === '{');
    const close = open < 0 ? undefined : closing(tokens, open);
    const end = close === undefined ? undefined : tokens[close]?.end;
    if (end === undefined) return;
    const inside = tokens.filter((at) => at.start > name.end && at.end < end);
    const words = new Set(inside.filter(({ type }) => type === 'word').map(({ text }) => text));
    found.push({
      name: name.text,
      start: name.start,
      end,
      line: source.slice(0, name.start).split('\n').length,
      words,
    });
  });
  return found;
}

/** `name` of `const name = (…) =>`. */
function arrowName(/** @type {import('./tokens.mjs').Token[]} */ tokens, /** @type {number} */ arrow) {
  if (tokens[arrow + 1]?.text !== '{') return undefined;
  for (let index = arrow - 1; index > 0 && tokens[index]?.text !== ';'; index--) {
    if (tokens[index]?.text === '=') return tokens[index - 1];
  }
  return undefined;
}

/**
 * How far each function is from the failing tests: 0 is named by one, 1 is called by such a function; others are left out.
 *
 * @param {readonly FunctionSpan[]} functions
 * @param {ReadonlySet<string>} named words of the failing tests
 * @returns {Map<FunctionSpan, number>}
 */
export function distances(functions, named) {
  /** @type {Map<FunctionSpan, number>} */
  const result = new Map();
  let wanted = named;
  for (let distance = 0; wanted.size > 0; distance++) {
    const reached = functions.filter((at) => wanted.has(at.name) && !result.has(at));
    for (const at of reached) result.set(at, distance);
    wanted = new Set(reached.flatMap((at) => [...at.words]));
  }
  return result;
}

/**
 * Names used in the test that begins at a line: up to the end of its call.
 *
 * @param {string} source
 * @param {number} line from 1
 * @returns {string[]}
 */
export function wordsOfTest(source, line) {
  const offset =
    source
      .split('\n')
      .slice(0, line - 1)
      .join('\n').length + (line > 1 ? 1 : 0);
  const tokens = tokenize(source);
  const open = tokens.findIndex((token) => token.start >= offset && token.text === '(');
  const close = open < 0 ? undefined : closing(tokens, open);
  return tokens
    .slice(Math.max(open, 0), close)
    .filter(({ type }) => type === 'word')
    .map(({ text }) => text);
}
