// A small lexer for JavaScript and TypeScript: enough to change an operator without touching strings, comments or regular
// expressions. Used by mutations.mjs and functions.mjs.

/**
 * @typedef {object} Token
 * @property {'word' | 'number' | 'text' | 'sign'} type `text` is a string, template or regular expression
 * @property {string} text
 * @property {number} start offset of its first character
 * @property {number} end offset after its last character
 */

const signs = [
  ...['>>>=', '...', '===', '!==', '**=', '<<=', '>>=', '>>>', '&&=', '||=', '??='],
  ...['=>', '==', '!=', '<=', '>=', '&&', '||', '??', '?.', '++', '--', '+=', '-=', '*=', '/=', '%=', '**', '<<', '>>'],
];
const wordsBeforeRegex = new Set(['return', 'typeof', 'case', 'in', 'of', 'delete', 'void', 'throw', 'await', 'else']);

/**
 * @param {string} source
 * @returns {Token[]} without blanks and comments, in order
 */
export function tokenize(source) {
  /** @type {Token[]} */
  const tokens = [];
  let at = 0;
  const push = (/** @type {Token['type']} */ type, /** @type {number} */ end) => {
    tokens.push({ type, text: source.slice(at, end), start: at, end });
    at = end;
  };
  while (at < source.length) {
    const rest = source.slice(at, at + 2);
    const character = source[at] ?? '';
    if (/\s/.test(character)) at++;
    else if (rest === '//' || (at === 0 && rest === '#!')) at = endOf(source, '\n', at);
    else if (rest === '/*') at = endOf(source, '*/', at + 2);
    else if (character === '"' || character === "'") push('text', endOfString(source, at));
    else if (character === '`') push('text', endOfTemplate(source, at));
    else if (character === '/' && regexMayStart(tokens.at(-1))) push('text', endOfRegex(source, at));
    else if (/[0-9]/.test(character))
      push('number', at + (/^[0-9][0-9a-zA-Z_.]*/.exec(source.slice(at))?.[0].length ?? 1));
    else if (/[\p{L}_$#]/u.test(character))
      push('word', at + (/^[\p{L}\p{N}_$#]+/u.exec(source.slice(at))?.[0].length ?? 1));
    else push('sign', at + (signs.find((sign) => source.startsWith(sign, at))?.length ?? 1));
  }
  return tokens;
}

/** Whether this token ends an operand, so that a sign after it is a binary operator. */
export function endsOperand(/** @type {Token | undefined} */ token) {
  if (!token) return false;
  if (token.type === 'sign') return token.text === ')' || token.text === ']';
  return !(token.type === 'word' && wordsBeforeRegex.has(token.text));
}

function regexMayStart(/** @type {Token | undefined} */ before) {
  return !endsOperand(before) && before?.text !== '}';
}

function endOf(/** @type {string} */ source, /** @type {string} */ mark, /** @type {number} */ from) {
  const found = source.indexOf(mark, from);
  return found < 0 ? source.length : found + mark.length;
}

function endOfString(/** @type {string} */ source, /** @type {number} */ start) {
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] === '\\') at++;
    else if (source[at] === source[start] || source[at] === '\n') return at + 1;
  }
  return source.length;
}

function endOfTemplate(/** @type {string} */ source, /** @type {number} */ start) {
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] === '\\') at++;
    else if (source[at] === '`') return at + 1;
    else if (source.startsWith('${', at)) at = endOfHole(source, at + 2) - 1;
  }
  return source.length;
}

function endOfHole(/** @type {string} */ source, /** @type {number} */ start) {
  let open = 1;
  for (let at = start; at < source.length; at++) {
    const character = source[at];
    if (character === '"' || character === "'") at = endOfString(source, at) - 1;
    else if (character === '`') at = endOfTemplate(source, at) - 1;
    else if (character === '{') open++;
    else if (character === '}' && --open === 0) return at + 1;
  }
  return source.length;
}

function endOfRegex(/** @type {string} */ source, /** @type {number} */ start) {
  let inClass = false;
  for (let at = start + 1; at < source.length; at++) {
    const character = source[at];
    if (character === '\\') at++;
    else if (character === '[') inClass = true;
    else if (character === ']') inClass = false;
    else if (character === '\n') return at;
    else if (character === '/' && !inClass) return at + 1 + (/^[a-z]*/.exec(source.slice(at + 1))?.[0].length ?? 0);
  }
  return source.length;
}
