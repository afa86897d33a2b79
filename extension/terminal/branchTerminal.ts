// A terminal whose program runs in a branch: the helper owns the pty, this only shows it. So a reload of the window, or a
// second window, loses nothing: what was printed is replayed. Used by terminals.ts.
import * as vscode from 'vscode';
import { toBoughError } from '../connection/error.js';
import type { BoughContext } from '../context.js';

export class BranchTerminal implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  private readonly named = new vscode.EventEmitter<string>();
  private readonly subscriptions: vscode.Disposable[] = [];
  private terminal: string | undefined;
  private rows = 24;
  private columns = 80;
  private ended = false;
  /** What came for the terminal before the answer that names it. */
  private early: { readonly terminal: string; readonly data: string }[] = [];

  readonly onDidWrite = this.write.event;
  readonly onDidChangeName = this.named.event;

  constructor(
    private readonly context: BoughContext,
    readonly branch: string,
    private readonly whenClosed: () => void,
  ) {}

  open(dimensions: vscode.TerminalDimensions | undefined): void {
    if (dimensions) ({ rows: this.rows, columns: this.columns } = dimensions);
    const { helper, model } = this.context;
    this.subscriptions.push(
      helper.onTerminalData(({ terminal, data }) => {
        if (this.terminal === undefined) this.early.push({ terminal, data });
        else if (terminal === this.terminal) this.write.fire(data);
      }),
      helper.onTerminalExit(({ terminal, exitCode }) => {
        if (terminal === this.terminal) this.sayEnd(exitCode);
      }),
      helper.onDidDisconnect(() => {
        this.terminal = undefined;
        this.early = [];
      }),
      helper.onDidConnect(() => void this.attach()),
      model.onDidChange(() => {
        const name = model.branch(this.branch)?.name;
        if (name !== undefined) this.named.fire(name);
      }),
    );
    void this.attach();
  }

  /** @param shell starts a shell in the branch where the agent has ended. */
  private async attach(shell = false): Promise<void> {
    if (this.terminal !== undefined) return;
    try {
      const { terminal, replay, running, exitCode } = await this.context.helper.request('bough/terminal/open', {
        branch: this.branch,
        rows: this.rows,
        columns: this.columns,
        ...(shell ? { shell } : {}),
      });
      if (this.isAttached(terminal)) return;
      this.terminal = terminal;
      this.ended = false;
      // Clear first: after a lost connection the replay holds what is on the screen already.
      this.write.fire(`\x1b[2J\x1b[3J\x1b[H${replay}`);
      for (const { terminal: of, data } of this.early.splice(0)) if (of === terminal) this.write.fire(data);
      if (!running) this.sayEnd(exitCode);
    } catch (error) {
      this.write.fire(`\r\n\x1b[33m${toBoughError(error).line}\x1b[0m\r\n`);
    }
  }

  /** A method, because it changes while an answer is waited for. */
  private isAttached(terminal: string): boolean {
    return this.terminal === terminal;
  }

  /** The terminal stays: what the agent said is worth reading. Only the person closes it. */
  private sayEnd(exitCode: number | null): void {
    if (this.ended) return;
    this.ended = true;
    const how =
      exitCode === null ? 'does not run' : exitCode === 0 ? 'has finished' : `ended with exit status ${exitCode}`;
    this.write.fire(`\r\n\x1b[2m[The agent ${how}. Enter: a shell in this branch]\x1b[0m\r\n`);
  }

  handleInput(data: string): void {
    if (this.ended) {
      if (data !== '\r' || !vscode.workspace.isTrusted) return;
      this.terminal = undefined;
      void this.attach(true);
      return;
    }
    if (this.terminal === undefined) return;
    this.context.helper.request('bough/terminal/input', { terminal: this.terminal, data }).catch((error: unknown) => {
      this.context.log.warn(`terminal input: ${toBoughError(error).line}`);
    });
  }

  setDimensions({ rows, columns }: vscode.TerminalDimensions): void {
    this.rows = rows;
    this.columns = columns;
    if (this.terminal === undefined) return;
    this.context.helper
      .request('bough/terminal/resize', { terminal: this.terminal, rows, columns })
      .catch((error: unknown) => this.context.log.warn(`terminal size: ${toBoughError(error).line}`));
  }

  /** The person closed it (a reload does not come here). The agent goes on. */
  close(): void {
    this.whenClosed();
    this.dispose();
  }

  dispose(): void {
    for (const subscription of this.subscriptions.splice(0)) subscription.dispose();
    this.write.dispose();
    this.named.dispose();
  }
}
