// A unified diff in git's form of what a branch changed, made of the branch's own changes and not of git's index: it shows
// untracked, ignored, empty and binary files as well. Pure but for the two reads it is given. Used by `bough/patch`.
import { structuredPatch } from 'diff';
import type { Change, WirePath } from '../protocol/boughfs.js';
import { asText, lines } from './text-merge.js';
import { pathBytes, quote } from '../protocol/wire-path.js';

const CONTEXT = 3;
/** A diff of more is told in one line: nobody reads it, and it would hold the helper up. */
const TEXT_LIMIT = 2 * 1024 * 1024;
/** Beyond so many edits the shortest diff costs more than it tells: then all old and all new lines are shown. */
const MAX_EDITS = 2000;

export interface Contents {
  /** The whole file or the target of a link, at the branch point and in the branch. */
  before(path: WirePath): Promise<Buffer>;
  after(path: WirePath): Promise<Buffer>;
}

export async function patchOf(changes: readonly Change[], contents: Contents): Promise<string> {
  let text = '';
  for (const change of changes) text += await patchOfOne(change, contents);
  return text;
}

async function patchOfOne(change: Change, contents: Contents): Promise<string> {
  const from = change.from ?? change.path;
  const a = side('a/', from);
  const b = side('b/', change.path);
  const header = [`diff --git ${a} ${b}`, ...headerLines(change, from)];
  const hasContent = change.type === 'file' || change.type === 'symlink';
  const changed = change.kind === 'added' || change.kind === 'deleted' || contentChanged(change);
  if (!hasContent || !changed) return `${header.join('\n')}\n`;
  const tooBig = change.size.before > TEXT_LIMIT || change.size.after > TEXT_LIMIT;
  const before = change.kind === 'added' || tooBig ? Buffer.alloc(0) : await contents.before(from);
  const after = change.kind === 'deleted' || tooBig ? Buffer.alloc(0) : await contents.after(change.path);
  const beforeText = change.binary || tooBig ? null : asText(before);
  const afterText = change.binary || tooBig ? null : asText(after);
  const names = [change.kind === 'added' ? '/dev/null' : a, change.kind === 'deleted' ? '/dev/null' : b] as const;
  if (beforeText === null || afterText === null) {
    return `${[...header, `Binary files ${names[0]} and ${names[1]} differ`].join('\n')}\n`;
  }
  const hunks = textHunks(beforeText, afterText);
  if (hunks === '') return `${header.join('\n')}\n`;
  return `${[...header, `--- ${names[0]}`, `+++ ${names[1]}`].join('\n')}\n${hunks}`;
}

function contentChanged(change: Change): boolean {
  return change.what.some((what) => what === 'content' || what === 'target' || what === 'type');
}

function headerLines(change: Change, from: WirePath): string[] {
  const mode = (value: number) => gitMode(change, value);
  const told: string[] = [];
  if (change.kind === 'added') told.push(`new file mode ${mode(change.mode.after)}`);
  else if (change.kind === 'deleted') told.push(`deleted file mode ${mode(change.mode.before)}`);
  else if (mode(change.mode.before) !== mode(change.mode.after)) {
    told.push(`old mode ${mode(change.mode.before)}`, `new mode ${mode(change.mode.after)}`);
  }
  if (change.kind === 'renamed') {
    told.push(
      `similarity index ${change.similarity ?? 100}%`,
      `rename from ${quote(pathBytes(from))}`,
      `rename to ${quote(pathBytes(change.path))}`,
    );
  }
  // What git has no words for is still a change: a diff must not hide it.
  for (const what of change.what) if (what === 'owner' || what === 'xattr') told.push(`bough ${what} changed`);
  return told;
}

function gitMode(change: Change, mode: number): string {
  const type = { file: 0o100000, directory: 0o040000, symlink: 0o120000, fifo: 0o010000, socket: 0o140000 };
  const bits = change.type === 'char' ? 0o020000 : change.type === 'block' ? 0o060000 : type[change.type];
  return (bits | (change.type === 'symlink' ? 0 : mode & 0o7777)).toString(8).padStart(6, '0');
}

function side(prefix: string, path: WirePath): string {
  return quote(Buffer.concat([Buffer.from(prefix), pathBytes(path)]));
}

/** The hunks of a unified diff; empty when the texts are equal. */
export function textHunks(before: string, after: string): string {
  if (before === after) return '';
  const patch =
    before === '' || after === ''
      ? undefined
      : structuredPatch('a', 'b', before, after, undefined, undefined, { context: CONTEXT, maxEditLength: MAX_EDITS });
  if (patch === undefined) return wholeHunk(before, after);
  return patch.hunks
    .map((hunk) => {
      const head = `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@\n`;
      return head + hunk.lines.map((line) => `${line}\n`).join('');
    })
    .join('');
}

/** All old lines go, all new ones come. */
function wholeHunk(before: string, after: string): string {
  const removed = lines(before);
  const added = lines(after);
  const print = (sign: string, line: string) =>
    line.endsWith('\n') ? sign + line : `${sign}${line}\n\\ No newline at end of file\n`;
  const head = `@@ -${range(1, removed.length)} +${range(1, added.length)} @@\n`;
  return head + removed.map((line) => print('-', line)).join('') + added.map((line) => print('+', line)).join('');
}

/** GNU's form: a range of one line has no count, an empty one begins a line earlier. */
function range(start: number, count: number): string {
  if (count === 0) return `${Math.max(0, start - 1)},0`;
  return count === 1 ? String(start) : `${start},${count}`;
}
