// Three-way merge of one text file by lines (node-diff3). Pure. Used by merging.ts for files that both sides changed.
import { diff3Merge } from 'node-diff3';

/** Larger files are left to a person: the merge is quadratic in what differs. */
export const MERGE_LIMIT_BYTES = 4 * 1024 * 1024;

/** The text, or null where the bytes are not UTF-8 or hold NUL. */
export function asText(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null;
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}

/**
 * Both sides' changes of `base` in one text; null where they touch the same lines. Line endings are part of their lines, so that a
 * file with mixed ones keeps them.
 */
export function mergeText(base: string, ours: string, theirs: string): string | null {
  if (ours === theirs || theirs === base) return ours;
  if (ours === base) return theirs;
  const regions = diff3Merge(lines(ours), lines(base), lines(theirs), { excludeFalseConflicts: true });
  let result = '';
  for (const region of regions) {
    if (region.conflict) return null;
    result += (region.ok ?? []).join('');
  }
  return result;
}

/** Lines with their endings. */
export function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** One side's value if only that side changed it; undefined where both changed it differently. */
export function mergeValue<T>(base: T, ours: T, theirs: T): T | undefined {
  if (ours === theirs || theirs === base) return ours;
  return ours === base ? theirs : undefined;
}
