// What a commit has to make of two trees, said in terms of their descriptions. Used by the model to judge commits.
import type { Tree } from './worker.js';

/** A description without times and without the names that share the file: what a merge is about. */
function essence(text: string | undefined): string | undefined {
  return text
    ?.replace(/ same file as .*$/s, '')
    .replace(/ (?:now|\d{17,19})(?=$| (?:user|trusted|security|system)\.)/s, '');
}

export function stripped(tree: Tree): Tree {
  return Object.fromEntries(Object.entries(tree).map(([path, text]) => [path, essence(text) ?? '']));
}

function changed(from: Tree, to: Tree): readonly string[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].filter((path) => from[path] !== to[path]);
}

/** Whether no path that one side changed is, or is above or below, one that the other side changed. */
export function apart(point: Tree, mine: Tree, theirs: Tree): boolean {
  const others = changed(point, theirs);
  return changed(point, mine).every((path) =>
    others.every((other) => path !== other && !path.startsWith(`${other}/`) && !other.startsWith(`${path}/`)),
  );
}

/** Theirs with mine on top, path by path; right where the two are apart. */
export function merged(point: Tree, mine: Tree, theirs: Tree): Tree {
  const [from, ours, onto] = [stripped(point), stripped(mine), stripped(theirs)];
  const result: Record<string, string> = { ...onto };
  for (const path of changed(from, ours)) {
    const text = ours[path];
    if (text === undefined) Reflect.deleteProperty(result, path);
    else result[path] = text;
  }
  return result;
}

/**
 * A tree as a commit into the base carries it: a file's time comes with its data, and data that is the same as before is not
 * written again, however often it was. Symlinks with several names become files of their own.
 */
export function carried(tree: Tree): Tree {
  return Object.fromEntries(
    Object.entries(tree).map(([path, text]) => {
      const shared = / same file as .*$/s.exec(text)?.[0] ?? '';
      return [path, (essence(text) ?? '') + (text.startsWith('0o12') ? '' : shared)];
    }),
  );
}
