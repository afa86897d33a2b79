// Hunks of one text file: what changed between two texts, and one hunk applied to a third. Pure; used by hunkActions.ts.
import { applyPatch, structuredPatch, type StructuredPatch, type StructuredPatchHunk } from 'diff';

export interface Hunk {
  /** First line in the new text, from 0, and how many lines of it are new. 0 lines: only something was removed there. */
  readonly newStart: number;
  readonly newLines: number;
  readonly oldLines: readonly string[];
  readonly patch: StructuredPatchHunk;
}

/** Context lines around a hunk, by which its place in another text is found. */
const CONTEXT = 3;

function wrap(hunk: StructuredPatchHunk): StructuredPatch {
  return { oldFileName: 'a', newFileName: 'b', oldHeader: undefined, newHeader: undefined, hunks: [hunk] };
}

/** The hunks between two texts; line ends are kept as they are. */
export function hunksOf(before: string, after: string): readonly Hunk[] {
  const { hunks } = structuredPatch('a', 'b', before, after, undefined, undefined, { context: CONTEXT });
  return hunks.map((patch) => {
    const isContext = (line: string) => line.startsWith(' ') || line.startsWith('\\');
    const lead = patch.lines.findIndex((line) => !isContext(line));
    const tail = [...patch.lines].reverse().findIndex((line) => !isContext(line));
    const core = patch.lines.slice(lead, patch.lines.length - tail);
    return {
      newStart: patch.newStart - 1 + lead + (patch.newLines === 0 ? 1 : 0),
      newLines: core.filter((line) => line.startsWith('+') || line.startsWith(' ')).length,
      oldLines: core.filter((line) => line.startsWith('-') || line.startsWith(' ')).map((line) => line.slice(1)),
      patch,
    };
  });
}

/** `text` with the hunk's change made in it; undefined when the place is not found unchanged. */
export function applyHunk(text: string, hunk: Hunk): string | undefined {
  const result = applyPatch(text, wrap(hunk.patch), { fuzzFactor: 0, autoConvertLineEndings: false });
  return result === false ? undefined : result;
}

/** `text` (the new side) with this hunk taken back; undefined when it is not there any more. */
export function revertHunk(text: string, hunk: Hunk): string | undefined {
  const { patch } = hunk;
  const flip = (line: string) =>
    line.startsWith('+') ? `-${line.slice(1)}` : line.startsWith('-') ? `+${line.slice(1)}` : line;
  const reversed: StructuredPatchHunk = {
    oldStart: patch.newStart,
    oldLines: patch.newLines,
    newStart: patch.oldStart,
    newLines: patch.oldLines,
    lines: patch.lines.map(flip),
  };
  const result = applyPatch(text, wrap(reversed), { fuzzFactor: 0, autoConvertLineEndings: false });
  return result === false ? undefined : result;
}
