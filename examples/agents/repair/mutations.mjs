// Every small change of a source file that could be the repair: one operator, constant or boundary each. Used by search.mjs.
import { endsOperand, tokenize } from './tokens.mjs';

/** @typedef {import('./tokens.mjs').Token} Token */
/** @typedef {'comparison' | 'operator' | 'constant' | 'off-by-one' | 'negation' | 'call'} Kind */

/**
 * @typedef {object} Mutation
 * @property {Kind} kind
 * @property {number} start offset in the source
 * @property {number} end
 * @property {string} before
 * @property {string} after
 * @property {number} line from 1
 */

/** @type {Readonly<Record<string, readonly string[]>>} */
const comparisons = {
  '<': ['<=', '>', '>='],
  '<=': ['<', '!==', '>='],
  '>': ['>=', '<', '<='],
  '>=': ['>', '!==', '<='],
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
};

/** @type {Readonly<Record<string, readonly string[]>>} */
const operators = {
  '+': ['-'],
  '-': ['+'],
  '*': ['/', '+'],
  '/': ['*'],
  '%': ['/'],
  '+=': ['-='],
  '-=': ['+='],
  '++': ['--'],
  '--': ['++'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['||'],
};

/** @type {Readonly<Record<string, readonly string[]>>} */
const calls = {
  floor: ['ceil', 'round'],
  ceil: ['floor', 'round'],
  round: ['floor', 'ceil'],
  min: ['max'],
  max: ['min'],
  some: ['every'],
  every: ['some'],
  padStart: ['padEnd'],
  padEnd: ['padStart'],
};

/** Operators whose operands may be one too many or too few. */
const countingSigns = new Set(['<', '<=', '>', '>=', '+', '-', '*', '/', '%']);

/**
 * @param {string} source
 * @returns {Mutation[]} in order of their place
 */
export function mutationsOf(source) {
  const tokens = tokenize(source);
  /** @type {Mutation[]} */
  const found = [];
  const add = (
    /** @type {Kind} */ kind,
    /** @type {Token} */ from,
    /** @type {Token} */ to,
    /** @type {string} */ after,
  ) => {
    const before = source.slice(from.start, to.end);
    const line = source.slice(0, from.start).split('\n').length;
    found.push({ kind, start: from.start, end: to.end, before, after, line });
  };
  tokens.forEach((token, index) => {
    const before = tokens[index - 1];
    const next = tokens[index + 1];
    if (token.type === 'number') constants(token.text).forEach((after) => add('constant', token, token, after));
    if (token.type === 'word') {
      if (token.text === 'true' || token.text === 'false')
        add('constant', token, token, String(token.text === 'false'));
      if (before?.text === '.') own(calls, token.text).forEach((after) => add('call', token, token, after));
    }
    if (token.type === 'sign') {
      const binary = endsOperand(before);
      if (binary) own(comparisons, token.text).forEach((after) => add('comparison', token, token, after));
      if (binary || token.text.length > 1)
        own(operators, token.text).forEach((after) => add('operator', token, token, after));
      if (token.text === '!' && next) add('negation', token, token, '');
      if (token.text === '(' && before?.text === 'if') negate(tokens, index, source, add);
      if (binary && countingSigns.has(token.text)) offByOne(tokens, index, source, add);
    }
  });
  return found.sort((a, b) => a.start - b.start);
}

function own(/** @type {Readonly<Record<string, readonly string[]>>} */ table, /** @type {string} */ key) {
  return Object.hasOwn(table, key) ? (table[key] ?? []) : [];
}

function constants(/** @type {string} */ text) {
  const value = Number(text.replaceAll('_', ''));
  if (!Number.isSafeInteger(value)) return [];
  return value === 0 ? ['1'] : [String(value - 1), String(value + 1)];
}

/** `if (a)` becomes `if (!(a))`. */
function negate(
  /** @type {Token[]} */ tokens,
  /** @type {number} */ open,
  /** @type {string} */ source,
  /** @type {(kind: Kind, from: Token, to: Token, after: string) => void} */ add,
) {
  const close = closing(tokens, open);
  const from = tokens[open];
  const to = close === undefined ? undefined : tokens[close];
  if (from && to) add('negation', from, to, `(!${source.slice(from.start, to.end)})`);
}

/** `a * b` becomes `(a - 1) * b` and so on; `a + 1` becomes `a`. */
function offByOne(
  /** @type {Token[]} */ tokens,
  /** @type {number} */ sign,
  /** @type {string} */ source,
  /** @type {(kind: Kind, from: Token, to: Token, after: string) => void} */ add,
) {
  const left = tokens[sign - 1];
  const right = tokens[sign + 1];
  const afterRight = tokens[sign + 2];
  const here = tokens[sign];
  if (!left || !right || !here) return;
  if (right.text === '1' && (here.text === '+' || here.text === '-')) add('off-by-one', here, right, '');
  const start = left.type === 'word' ? chainStart(tokens, sign - 1) : undefined;
  if (start) {
    const text = source.slice(start.start, left.end);
    for (const change of ['- 1', '+ 1']) add('off-by-one', start, left, `(${text} ${change})`);
  }
  if (right.type === 'word' && !['(', '.', '[', '?.', '`'].includes(afterRight?.text ?? '')) {
    for (const change of ['- 1', '+ 1']) add('off-by-one', right, right, `(${right.text} ${change})`);
  }
}

/** The first token of `a.b.c`, whose last is at `index`. */
function chainStart(/** @type {Token[]} */ tokens, /** @type {number} */ index) {
  let first = index;
  while (tokens[first - 1]?.text === '.' && tokens[first - 2]?.type === 'word') first -= 2;
  return tokens[first - 1]?.text === '.' ? undefined : tokens[first];
}

/**
 * Index of the bracket that closes the one at `open`.
 *
 * @param {readonly Token[]} tokens
 * @param {number} open
 * @returns {number | undefined}
 */
export function closing(tokens, open) {
  let depth = 0;
  for (let index = open; index < tokens.length; index++) {
    const token = tokens[index];
    if (token?.type !== 'sign') continue;
    if ('([{'.includes(token.text)) depth++;
    else if (')]}'.includes(token.text) && --depth === 0) return index;
  }
  return undefined;
}
