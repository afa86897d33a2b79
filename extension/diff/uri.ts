// Addresses of the read-only `bough:` file system: `bough:/<side>/<branch>/<path>`. Used by the file system itself, the
// diffs, the tree and the gutter.
import * as vscode from 'vscode';
import type { Side, WirePath } from '../../helper/protocol/boughfs.js';

export const SCHEME = 'bough';

/** `empty` is the other side of an added or deleted file: always there, always empty. */
export type AddressSide = Side | 'empty';

export interface Address<S extends AddressSide = AddressSide> {
  readonly side: S;
  readonly branch: string;
  readonly path: WirePath;
}

const SIDES: readonly AddressSide[] = ['branch', 'point', 'parent', 'empty'];
/** A path whose bytes are not UTF-8 travels as one segment below this one. */
const BYTES = '.bytes';

function isSide(text: string): text is AddressSide {
  return (SIDES as readonly string[]).includes(text);
}

export function toUri({ side, branch, path }: Address): vscode.Uri {
  const tail = typeof path === 'string' ? path : `${BYTES}/${Buffer.from(path.b64, 'base64').toString('base64url')}`;
  return vscode.Uri.from({ scheme: SCHEME, path: `/${side}/${branch}${tail === '' ? '' : `/${tail}`}` });
}

/** @returns undefined when the address is not one of ours. */
export function fromUri(uri: vscode.Uri): Address | undefined {
  if (uri.scheme !== SCHEME) return undefined;
  const [, side, branch, ...rest] = uri.path.split('/');
  if (side === undefined || !isSide(side) || branch === undefined || branch === '') return undefined;
  const [first, second] = rest;
  if (first === BYTES && second !== undefined && rest.length === 2) {
    return { side, branch, path: { b64: Buffer.from(second, 'base64url').toString('base64') } };
  }
  return { side, branch, path: rest.join('/') };
}
