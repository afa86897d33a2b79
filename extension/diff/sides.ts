// The two sides of a changed file's diff, and its title. Pure addresses, nothing is asked. Used by the tree's rows, the diff
// commands and the merge.
import * as vscode from 'vscode';
import type { Change, WirePath } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { pathLabel } from './paths.js';
import { SCHEME, toUri, toUriBeside, type Address } from './uri.js';

/** The branch's side: the live file where the branch is mounted, so that it can be edited; else the read-only picture. */
export function branchSide(branch: Branch, path: WirePath, type: Change['type']): vscode.Uri {
  // Links are shown as links: the editor would follow them out of the branch.
  if (branch.folder !== undefined && typeof path === 'string' && type !== 'symlink') {
    return vscode.Uri.joinPath(vscode.Uri.file(branch.folder), path);
  }
  return toUri({ side: 'branch', branch: branch.id, path });
}

/** undefined: there is nothing on that side. */
export interface Sides {
  readonly before: vscode.Uri | undefined;
  readonly after: vscode.Uri | undefined;
}

/** Against the instant the branch was made. */
export function sides(branch: Branch, change: Change): Sides {
  const after = change.kind === 'deleted' ? undefined : branchSide(branch, change.path, change.type);
  if (change.kind === 'added') return { before: undefined, after };
  const point: Address = { side: 'point', branch: branch.id, path: change.from ?? change.path };
  // A renamed file is shown as one; all others have the same path on both sides.
  return { before: after && change.from === undefined ? beside(after, point) : toUri(point), after };
}

/** Against the same file of a sibling. */
export function sidesAgainst(sibling: Branch, branch: Branch, change: Change): Sides {
  const after = change.kind === 'deleted' ? undefined : branchSide(branch, change.path, change.type);
  if (change.kind === 'added') return { before: undefined, after };
  const address: Address = { side: 'branch', branch: sibling.id, path: change.from ?? change.path };
  return { before: after ? beside(after, address) : toUri(address), after };
}

function beside(live: vscode.Uri, address: Address): vscode.Uri {
  return live.scheme === SCHEME ? toUri(address) : toUriBeside(live, address);
}

function modeNote(change: Change): string {
  if (change.kind !== 'modified' || !change.what.includes('mode')) return '';
  const octal = (mode: number) => (mode & 0o7777).toString(8).padStart(4, '0');
  return `, mode ${octal(change.mode.before)} → ${octal(change.mode.after)}`;
}

/**
 * The editor's own diff command with its arguments. As a row's command it is kept by the editor itself, so a click works
 * also while the tree is being read again.
 */
export function diffCommand(branch: Branch, change: Change): vscode.Command & { arguments: unknown[] } {
  const { before, after } = sides(branch, change);
  const nothing = toUri({ side: 'empty', branch: branch.id, path: change.path });
  const title = `${pathLabel(change.path)} (${branch.name}, ${change.kind}${modeNote(change)})`;
  return {
    command: 'vscode.diff',
    title: 'Open Diff',
    arguments: [before ?? nothing, after ?? nothing, title, { preview: true }],
  };
}
