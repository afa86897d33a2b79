// The gutter: what a file of a branch changed against the instant the branch was made. One source control entry without
// groups carries it, made when the first such file is opened.
import * as vscode from 'vscode';
import { toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { toUriBeside } from './uri.js';

export function registerGutter(context: BoughContext): void {
  let source: vscode.SourceControl | undefined;
  const provider: vscode.QuickDiffProvider = {
    async provideOriginalResource(uri) {
      if (uri.scheme !== 'file') return undefined;
      const inside = context.model.fileInBranch(uri);
      if (!inside) return undefined;
      const address = { side: 'point', branch: inside.branch.id, path: inside.path } as const;
      try {
        await context.helper.request('bough/stat', address);
        return toUriBeside(uri, address);
      } catch (error) {
        // Added in the branch: all of it is new, which the tree says already.
        context.log.trace(`no gutter for ${inside.path}: ${toBoughError(error).code}`);
        return undefined;
      }
    },
  };
  const show = () => {
    if (source) return;
    const any = vscode.window.visibleTextEditors.some(
      ({ document }) => document.uri.scheme === 'file' && context.model.fileInBranch(document.uri),
    );
    if (!any) return;
    source = context.own(vscode.scm.createSourceControl('bough', 'Bough (changes against the branch point)'));
    source.inputBox.visible = false;
    source.quickDiffProvider = provider;
  };
  context.own(vscode.window.onDidChangeVisibleTextEditors(show));
  context.own(context.model.onDidChange(show));
  show();
}
