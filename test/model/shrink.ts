// Fewer steps that still fail, for a person to read. (Delta debugging: leave out ever smaller parts.)
import type { Step } from './steps.js';

/** `fails` answers the steps up to the failure, or null. Gives the shortest list found in the time. */
export async function shrink(
  steps: readonly Step[],
  seconds: number,
  fails: (steps: readonly Step[]) => Promise<readonly Step[] | null>,
): Promise<readonly Step[]> {
  const end = Date.now() + seconds * 1000;
  let best = steps;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.length && Date.now() < end;) {
      const without = [...best.slice(0, from), ...best.slice(from + size)];
      const shorter = without.length === 0 ? null : await fails(without);
      if (shorter === null) from += size;
      else best = shorter;
    }
  }
  return best;
}
