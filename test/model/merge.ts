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

/** Theirs with mine on top, path by path. */
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

/** Times alone are no change: where only they differ from the point, they are not compared. */
export function withoutTimesOfUnchanged(point: Tree, is: Tree, wanted: Tree): readonly [Tree, Tree] {
  const [a, b]: [Record<string, string>, Record<string, string>] = [{ ...is }, { ...wanted }];
  for (const path of Object.keys(wanted)) {
    const [old, now, text] = [point[path], is[path], wanted[path]];
    if (text === undefined || now === undefined || essence(old) !== essence(text)) continue;
    a[path] = essence(now) ?? '';
    b[path] = essence(text) ?? '';
  }
  return [a, b];
}
