// How a command is registered: what it throws becomes a message with a code and what to do. Used by every command's file.
import * as vscode from 'vscode';
import { toBoughError } from '../connection/error.js';
import type { Watched } from '../connection/helper.js';
import type { BoughContext } from '../context.js';

/** Shows an error to the person; the whole of it goes to the log. Does not wait for the person. */
export function showError(context: BoughContext, doing: string, thrown: unknown): void {
  if (thrown instanceof vscode.CancellationError) return;
  const error = toBoughError(thrown);
  context.log.error(`${doing}: ${error.line}`, error.stack ?? '');
  const showLog = 'Show Log';
  const doctor = 'Open Doctor';
  const machine = /^E_(HELPER_START|NO_FUSE|NO_BWRAP|NO_AGENT|MOUNT)/.test(error.code);
  void vscode.window
    .showErrorMessage(`${doing}: ${error.line}`, ...(machine ? [doctor, showLog] : [showLog]))
    .then((pick) => {
      if (pick === showLog) context.log.show(true);
      if (pick === doctor) void vscode.commands.executeCommand('bough.doctor');
    });
}

/** Registers a command; `doing` begins its error messages ("Commit to Parent"). */
export function registerCommand(
  id: string,
  doing: string,
  context: BoughContext,
  run: (...args: unknown[]) => Promise<unknown>,
): void {
  context.own(
    vscode.commands.registerCommand(id, async (...args: unknown[]) => {
      try {
        return await run(...args);
      } catch (error) {
        showError(context, doing, error);
        return undefined;
      }
    }),
  );
}

/** Work that may take over a second: a notification with a Cancel button. */
export function withProgress<T>(title: string, work: (watched: Watched) => Promise<T>): Promise<T> {
  return Promise.resolve(
    vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title, cancellable: true },
      (progress, token) => work({ token, report: (message) => progress.report({ message }) }),
    ),
  );
}

/** Untrusted workspaces may be looked at; nothing of them runs and nothing is changed. */
export function assertTrusted(): void {
  if (!vscode.workspace.isTrusted) {
    throw new Error(
      'This workspace is not trusted, so Bough shows branches but runs and changes nothing. Trust it with "Workspaces: Manage Workspace Trust".',
    );
  }
}
