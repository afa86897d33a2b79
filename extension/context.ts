// What lives as long as the extension does: the connection, the model, the log, and every disposable. Made once by
// extension.ts and handed to each feature.
import * as vscode from 'vscode';
import { BranchModel } from './branches/model.js';
import { Helper } from './connection/helper.js';

export class BoughContext implements vscode.Disposable {
  readonly log: vscode.LogOutputChannel;
  readonly helper: Helper;
  readonly model: BranchModel;
  readonly extensionUri: vscode.Uri;
  /** Remembered per window (which terminals were open); the state of branches is the helper's alone. */
  readonly windowState: vscode.Memento;
  /** The same in every window, and there when a window comes back as another workspace. */
  readonly everyWindowState: vscode.Memento;

  private readonly disposables: vscode.Disposable[] = [];

  constructor(extension: vscode.ExtensionContext) {
    this.extensionUri = extension.extensionUri;
    this.windowState = extension.workspaceState;
    this.everyWindowState = extension.globalState;
    this.log = this.own(vscode.window.createOutputChannel('Bough', { log: true }));
    this.helper = this.own(new Helper(vscode.Uri.joinPath(extension.extensionUri, 'dist').fsPath, this.log));
    this.model = this.own(new BranchModel(this.helper, this.log));
  }

  /** Ties `disposable` to the life of the extension. */
  own<T extends vscode.Disposable>(disposable: T): T {
    this.disposables.push(disposable);
    return disposable;
  }

  dispose(): void {
    for (const disposable of this.disposables.splice(0).reverse()) disposable.dispose();
  }
}
