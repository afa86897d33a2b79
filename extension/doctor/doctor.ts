// "Bough: Doctor": the report as a read-only document, so that it can be searched, copied and read aloud.
import * as vscode from 'vscode';
import { registerCommand, withProgress } from '../commands/run.js';
import { toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';
import { doctorReport, helperFailureReport } from './report.js';

const DOCTOR_SCHEME = 'bough-doctor';
const DOCTOR_URI = vscode.Uri.from({ scheme: DOCTOR_SCHEME, path: '/Bough Doctor.md' });

export function registerDoctor(context: BoughContext): void {
  const changed = context.own(new vscode.EventEmitter<vscode.Uri>());
  let text = '';
  context.own(
    vscode.workspace.registerTextDocumentContentProvider(DOCTOR_SCHEME, {
      onDidChange: changed.event,
      provideTextDocumentContent: () => text,
    }),
  );
  registerCommand('bough.doctor', 'Doctor', context, async () => {
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === 'file')?.uri.fsPath;
    text = await withProgress('Examining this machine', async (watched) => {
      try {
        return doctorReport((await context.helper.request('bough/doctor', folder ? { folder } : {}, watched)).checks);
      } catch (thrown) {
        if (thrown instanceof vscode.CancellationError) throw thrown;
        const error = toBoughError(thrown);
        return helperFailureReport(`${error.message} (${error.code})`, error.fix);
      }
    });
    changed.fire(DOCTOR_URI);
    const document = await vscode.workspace.openTextDocument(DOCTOR_URI);
    await vscode.window.showTextDocument(document, { preview: true });
  });
}
