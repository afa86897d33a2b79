// What other extensions get from `vscode.extensions.getExtension('bough.bough').activate()`. Small on purpose: everything
// here is kept stable.
import type * as vscode from 'vscode';
import type { Branch } from '../helper/protocol/rpc.js';

export interface BoughApi {
  readonly version: 1;
  /** The branches of this window's folders, as the helper told them last. */
  branches(): readonly Branch[];
  /** After each change of `branches()`. */
  readonly onDidChangeBranches: vscode.Event<void>;
  /** The branch whose folder holds this file. */
  branchOf(uri: vscode.Uri): { readonly branch: Branch; readonly path: string } | undefined;
}
