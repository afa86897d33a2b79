// In which order the changes are tried. A hint chooses the way, a seed the order among equals, so that branches of one
// agent do not all try the same thing first. Used by search.mjs.

/** @typedef {import('./mutations.mjs').Mutation} Mutation */
/** @typedef {import('./mutations.mjs').Kind} Kind */

/**
 * @typedef {object} Strategy
 * @property {string} name as it is logged
 * @property {number} seed
 * @property {readonly Kind[]} kinds first to last
 * @property {'near' | 'small' | 'bottom' | 'random'} order
 */

/** @type {readonly Kind[]} */
const usual = ['comparison', 'operator', 'off-by-one', 'constant', 'call', 'negation'];

/** @type {readonly [RegExp, Kind][]} */
const wordsOfKinds = [
  [/compar|condition/i, 'comparison'],
  [/operator|arithmetic|sign/i, 'operator'],
  [/off[- ]by[- ]one|bound|edge|index/i, 'off-by-one'],
  [/constant|number|literal/i, 'constant'],
  [/call|round|function/i, 'call'],
  [/negat|invert/i, 'negation'],
];

/**
 * @param {string} hint a person's words, such as `constants first` or `smallest change`, `random seed 7`, `bottom up`
 * @param {number | undefined} seed wins over the hint's own
 * @returns {Strategy}
 */
export function strategyOf(hint, seed) {
  const said = wordsOfKinds.filter(([words]) => words.test(hint)).map(([, kind]) => kind);
  const kinds = [...said, ...usual.filter((kind) => !said.includes(kind))];
  const hinted = /seed\s*[:=]?\s*(\d+)/i.exec(hint)?.[1];
  const chosen = seed ?? (hinted === undefined ? 0 : Number(hinted));
  if (/random|shuffle/i.test(hint)) return { name: `random, seed ${chosen}`, seed: chosen, kinds, order: 'random' };
  if (/small|minimal|short/i.test(hint)) return { name: 'smallest change first', seed: chosen, kinds, order: 'small' };
  if (/bottom|last/i.test(hint)) return { name: 'bottom up', seed: chosen, kinds, order: 'bottom' };
  return { name: `${kinds[0]} first`, seed: chosen, kinds, order: 'near' };
}

/**
 * @template {Mutation & { file: string, distance: number }} Candidate
 * @param {readonly Candidate[]} candidates
 * @param {Strategy} strategy
 * @returns {Candidate[]}
 */
export function ordered(candidates, strategy) {
  const random = randomNumbers(strategy.seed);
  const ranked = candidates.map((candidate) => ({ candidate, lot: random() }));
  const kind = (/** @type {Candidate} */ { kind: of }) => strategy.kinds.indexOf(of);
  const size = (/** @type {Candidate} */ { before, after }) =>
    Math.abs(after.length - before.length) * 10 + after.length;
  /** @type {Record<Strategy['order'], (candidate: Candidate) => number[]>} */
  const keys = {
    near: (at) => [at.distance, kind(at)],
    small: (at) => [at.distance, size(at)],
    bottom: (at) => [at.distance, -at.line],
    random: (at) => [at.distance],
  };
  const keyOf = keys[strategy.order];
  ranked.sort((a, b) => {
    const [x, y] = [keyOf(a.candidate), keyOf(b.candidate)];
    const differs = x.findIndex((value, index) => value !== y[index]);
    return differs < 0 ? a.lot - b.lot : (x[differs] ?? 0) - (y[differs] ?? 0);
  });
  return ranked.map(({ candidate }) => candidate);
}

/** A seed for a branch of no hint: its id, folded (FNV-1a, 32 bits). */
export function seedOfText(/** @type {string} */ text) {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return hash;
}

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
function randomNumbers(/** @type {number} */ seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
