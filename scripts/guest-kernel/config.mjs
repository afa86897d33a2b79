// Kernel configurations as text: what a fragment asks for, and what of it a configuration does not have. Pure.
// Used by scripts/guest-kernel.mjs.

/**
 * @typedef {object} Option
 * @property {string} value `y`, `n`, a number or a quoted text
 * @property {boolean} lenient may be unknown to a kernel: its comment says "(where it exists)"
 */

/** @param {string} text @returns {[string, string] | undefined} name and value of a line that sets an option */
function assignment(text) {
  const set = /^(CONFIG_\w+)=(.*)$/.exec(text);
  if (set) return [set[1] ?? '', set[2] ?? ''];
  const unset = /^# (CONFIG_\w+) is not set$/.exec(text);
  return unset ? [unset[1] ?? '', 'n'] : undefined;
}

/**
 * @param {string} text of a fragment; where an option is named twice the last one counts
 * @returns {Map<string, Option>}
 */
export function readFragment(text) {
  /** @type {Map<string, Option>} */
  const options = new Map();
  let lenient = false;
  for (const line of text.split('\n')) {
    const found = assignment(line);
    if (found) options.set(found[0], { value: found[1], lenient });
    lenient = found === undefined && line.includes('(where it exists)');
  }
  return options;
}

/**
 * One fragment laid over another. Members of a choice that a later one replaces must be unset there.
 * @param {readonly string[]} fragments
 * @returns {string} with each option once, for KCONFIG_ALLCONFIG
 */
export function mergedConfig(fragments) {
  return [...readFragment(fragments.join('\n'))]
    .map(([name, { value, lenient }]) => {
      const comment = lenient ? '# (where it exists)\n' : '';
      return `${comment}${value === 'n' ? `# ${name} is not set` : `${name}=${value}`}\n`;
    })
    .join('');
}

/**
 * @param {ReadonlyMap<string, Option>} wanted
 * @param {string} config the whole configuration that came out
 * @returns {string[]} what is otherwise there, such as `CONFIG_SMP=y`
 */
export function unkept(wanted, config) {
  const found = readFragment(config);
  return [...wanted].flatMap(([name, { value, lenient }]) => {
    const got = found.get(name)?.value;
    if (got === value || (got === undefined && (value === 'n' || lenient))) return [];
    return [`${name}=${value}`];
  });
}
