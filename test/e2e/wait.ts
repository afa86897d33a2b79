// Waiting for conditions, never for time. Used by all end-to-end stories.

/** Continuous integration is slow: only a hang may end a wait. */
export const PATIENCE_MS = 150_000;

/**
 * Asks again and again until `condition` gives something truthy; errors inside it count as "not yet".
 * @param what ends the sentence "waited N s for …" when it never happens.
 */
export async function until<T>(
  what: string,
  condition: () => Promise<T | undefined | false | null> | T | undefined | false | null,
  patienceMs: number = PATIENCE_MS,
): Promise<T> {
  const deadline = Date.now() + patienceMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value !== undefined && value !== false && value !== null) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) {
      const why = last === undefined ? '' : `: ${last instanceof Error ? last.message : JSON.stringify(last)}`;
      throw new Error(`waited ${Math.round(patienceMs / 1000)} s for ${what}${why}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}
