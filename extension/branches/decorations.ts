// The letters at the right of the tree's rows (A, M, D, R for files; checks and overlaps for branches). Each has a tooltip
// in words, and the row's own text says the same.
import * as vscode from 'vscode';
import type { BoughContext } from '../context.js';
import { fromUri, SCHEME } from '../diff/uri.js';
import { ROW_QUERY } from './nodes.js';
import { checkVerdict, checkWords, overlapWords } from './state.js';

const FILE_ROWS: Readonly<Record<string, readonly [letter: string, words: string, color: string]>> = {
  added: ['A', 'Added in this branch', 'gitDecoration.addedResourceForeground'],
  modified: ['M', 'Modified in this branch', 'gitDecoration.modifiedResourceForeground'],
  deleted: ['D', 'Deleted in this branch', 'gitDecoration.deletedResourceForeground'],
  renamed: ['R', 'Renamed in this branch', 'gitDecoration.renamedResourceForeground'],
};

export function registerDecorations(context: BoughContext): void {
  const changed = context.own(new vscode.EventEmitter<undefined>());
  context.own(context.model.onDidChange(() => changed.fire(undefined)));
  context.own(
    vscode.window.registerFileDecorationProvider({
      onDidChangeFileDecorations: changed.event,
      provideFileDecoration(uri) {
        if (uri.scheme !== SCHEME || !uri.query.startsWith(ROW_QUERY)) return undefined;
        const row = uri.query.slice(ROW_QUERY.length);
        const file = FILE_ROWS[row];
        if (file) {
          const [letter, words, color] = file;
          return new vscode.FileDecoration(letter, words, new vscode.ThemeColor(color));
        }
        const branch = context.model.branch(fromUri(uri)?.branch ?? '');
        if (!branch) return undefined;
        switch (checkVerdict(branch)) {
          case 'passed':
            return new vscode.FileDecoration('✓', 'Checks passed');
          case 'failed':
            return new vscode.FileDecoration('✗', 'Checks failed');
          case 'running':
            return new vscode.FileDecoration('…', 'Checks running');
          case 'stale':
            return new vscode.FileDecoration('?', checkWords(branch));
          default:
            return overlapWords(branch) === undefined
              ? undefined
              : new vscode.FileDecoration('≡', overlapWords(branch));
        }
      },
    }),
  );
}
