// Does what boughfs leaves to its callers: text files that both the branch and its parent changed are merged by lines, then the
// commit or rebase is tried again. Used by committing.ts.
import type { Conflict, Side, WirePath } from '../protocol/boughfs.js';
import { BoughError, errorCode } from '../protocol/failure.js';
import type { StoreLink } from '../files/store-link.js';
import { asText, MERGE_LIMIT_BYTES, mergeText, mergeValue } from './text-merge.js';
import { pathKey } from '../protocol/wire-path.js';

/** A person who saves again and again must not keep a commit going for ever. */
const ROUNDS = 8;
const CHUNK = 8 * 1024 * 1024;

/** An editor that saves truncates and then writes: what lies between is nobody's text. */
const SAVING_MS = 50;

interface Merged {
  readonly conflict: Conflict;
  readonly content: string;
  readonly mode: number;
  /** The parent's text that went into it. */
  readonly seen: string;
}

/** Runs `attempt`; where it meets conflicts that merge cleanly, settles them and runs it again. */
export async function withMerges<T>(
  link: StoreLink,
  branch: string,
  attempt: () => Promise<T>,
): Promise<{ readonly result: T; readonly merged: readonly WirePath[] }> {
  const merged = new Map<string, WirePath>();
  for (let round = 0; ; round++) {
    try {
      return { result: await attempt(), merged: [...merged.values()] };
    } catch (error) {
      const conflicts = error instanceof BoughError && error.code === 'E_CONFLICT' ? error.detail.conflicts : undefined;
      if (conflicts === undefined || conflicts.length === 0 || round >= ROUNDS) throw error;
      for (const path of await settle(link, branch, conflicts, error as BoughError)) merged.set(pathKey(path), path);
    }
  }
}

/** All or nothing: only when every conflict merges is the first one settled. */
async function settle(
  link: StoreLink,
  branch: string,
  conflicts: readonly Conflict[],
  error: BoughError,
): Promise<WirePath[]> {
  const ready: Merged[] = [];
  const left: Conflict[] = [];
  for (const conflict of conflicts) {
    const merged = await mergePatiently(link, branch, conflict);
    if (merged === null) left.push(conflict);
    else ready.push(merged);
  }
  if (left.length > 0) {
    const [count, verb] = left.length === 1 ? ['1 path', 'was'] : [`${left.length} paths`, 'were'];
    throw new BoughError('E_CONFLICT', `${count} ${verb} changed on both sides and cannot be merged by lines.`, {
      ...error.detail,
      conflicts: left,
      fix: 'Open each file in the merge editor or choose a side, then do it again.',
    });
  }
  for (const merged of ready) await resolve(link, branch, merged);
  return ready.map(({ conflict }) => conflict.path);
}

/** Twice where it does not merge: the first look may have met a save that was not finished. */
async function mergePatiently(link: StoreLink, branch: string, conflict: Conflict): Promise<Merged | null> {
  const first = await mergeOne(link, branch, conflict);
  if (first !== null || !mayMerge(conflict)) return first;
  await new Promise((done) => setTimeout(done, SAVING_MS));
  return mergeOne(link, branch, conflict);
}

function mayMerge({ reason, base, ours, theirs }: Conflict): boolean {
  const plain = [base, ours, theirs].every(
    (side) => side.type === 'file' && !side.binary && side.size <= MERGE_LIMIT_BYTES,
  );
  return reason === 'both-changed' && plain;
}

async function mergeOne(link: StoreLink, branch: string, conflict: Conflict): Promise<Merged | null> {
  if (!mayMerge(conflict)) return null;
  const [base, ours, theirs] = await Promise.all(
    (['point', 'branch', 'parent'] as const).map((side) => readText(link, branch, side, conflict.path)),
  );
  if (base === undefined || ours === undefined || theirs === undefined) return null;
  if (base === null || ours === null || theirs === null) return null;
  // Both changed it, and yet the parent has the text of the point: that text is not the one of that time. A merge on it would
  // drop what the person wrote.
  if (base === theirs) return null;
  const content = mergeText(base, ours, theirs);
  const mode = mergeValue(conflict.base.mode, conflict.ours.mode, conflict.theirs.mode);
  return content === null || mode === undefined ? null : { conflict, content, mode, seen: theirs };
}

/** Null where it is no text, or not kept: the text of the point is known only of files that were small enough. */
async function readText(link: StoreLink, branch: string, side: Side, path: WirePath): Promise<string | null> {
  try {
    return asText(await readWhole(link, branch, side, path));
  } catch (error) {
    if (['E_NO_PATH', 'E_IO', 'E_TOO_BIG'].includes(errorCode(error))) return null;
    throw error;
  }
}

/** Hands the merged content in. If the person saved since it was read, boughfs refuses it, and their newer text is merged. */
async function resolve(link: StoreLink, branch: string, first: Merged): Promise<void> {
  const { conflict } = first;
  const { path } = conflict;
  let merged: Merged | null = first;
  for (let round = 0; merged !== null && round < ROUNDS; round++) {
    const { content, mode, seen } = merged;
    try {
      const [data, text] = [base64(content), base64(seen)];
      await link.request('branch.resolve', { branch, path, take: 'content', data, mode, seen: text });
      return;
    } catch (error) {
      if (errorCode(error) !== 'E_MOVED') throw error;
    }
    merged = await mergePatiently(link, branch, conflict);
  }
  throw new BoughError('E_CONFLICT', 'A file was changed in the parent while it was being merged.', {
    conflicts: [conflict],
    paths: [path],
    fix: 'Save your files and commit again.',
  });
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}

/** A whole file, in pieces of what one answer may hold. E_TOO_BIG over the limit. */
export async function readWhole(
  link: StoreLink,
  branch: string,
  side: Side,
  path: WirePath,
  limit = 64 * 1024 * 1024,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let offset = 0;
  for (;;) {
    const { data, size, eof } = await link.request('branch.read', { branch, side, path, offset, length: CHUNK });
    if (size > limit) {
      throw new BoughError('E_TOO_BIG', `The file has ${size} bytes, more than the ${limit} that can be shown.`, {
        paths: [path],
        fix: "Open it in the branch's folder.",
      });
    }
    const part = Buffer.from(data, 'base64');
    parts.push(part);
    offset += part.length;
    if (eof || part.length === 0) return Buffer.concat(parts);
  }
}
