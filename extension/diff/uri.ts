// Addresses of the read-only `bough:` file system. Two forms:
// - `bough://<side>.<branch>/<path>`, in which one can walk from folder to folder;
// - beside a live file: that file's own path, with side, branch and path in the query, so that the editor sees the two
//   sides of a diff as one file and not as a rename.
// Used by the file system itself, the diffs, the tree and the gutter.
import * as vscode from 'vscode';
import type { Side, WirePath } from '../../helper/protocol/boughfs.js';

export const SCHEME = 'bough';

/** `empty` is the other side of an added or deleted file: always there, always empty. */
export type AddressSide = Side | 'empty';

export interface Address<S extends AddressSide = AddressSide> {
  readonly side: S;
  /** Lower case only, as an authority must be. */
  readonly branch: string;
  readonly path: WirePath;
}

const SIDES: readonly string[] = ['branch', 'point', 'parent', 'empty'] satisfies AddressSide[];
/** A path whose bytes are not UTF-8 travels as one segment below this one. */
const BYTES = '.bytes';

function isSide(text: unknown): text is AddressSide {
  return typeof text === 'string' && SIDES.includes(text);
}

function toText(path: WirePath): string {
  return typeof path === 'string' ? path : `${BYTES}/${Buffer.from(path.b64, 'base64').toString('base64url')}`;
}

function toPath(text: string): WirePath {
  const [first, second, ...rest] = text.split('/');
  if (first !== BYTES || second === undefined || rest.length > 0) return text;
  return { b64: Buffer.from(second, 'base64url').toString('base64') };
}

export function toUri({ side, branch, path }: Address): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, authority: `${side}.${branch}`, path: `/${toText(path)}` });
}

/** The address as the other side of `live`. */
export function toUriBeside(live: vscode.Uri, { side, branch, path }: Address): vscode.Uri {
  const query = new URLSearchParams({ side, branch, at: toText(path) }).toString();
  return vscode.Uri.from({ scheme: SCHEME, path: live.path, query });
}

/** @returns undefined when the address is not one of ours. */
export function fromUri(uri: vscode.Uri): Address | undefined {
  if (uri.scheme !== SCHEME) return undefined;
  if (uri.authority === '') {
    const query = new URLSearchParams(uri.query);
    const [side, branch, at] = [query.get('side'), query.get('branch'), query.get('at')];
    return isSide(side) && branch !== null && at !== null ? { side, branch, path: toPath(at) } : undefined;
  }
  const dot = uri.authority.indexOf('.');
  const side = uri.authority.slice(0, dot);
  if (dot < 0 || !isSide(side)) return undefined;
  return { side, branch: uri.authority.slice(dot + 1), path: toPath(uri.path.replace(/^\//, '')) };
}
