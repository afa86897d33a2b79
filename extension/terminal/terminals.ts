// Terminals of branches: one per branch and window, opened on request, and opened again after a reload for the branches
// whose terminal was open. Used by extension.ts and the commands.
import * as vscode from 'vscode';
import type { Branch } from '../../helper/protocol/rpc.js';
import type { BoughContext } from '../context.js';
import { BranchTerminal } from './branchTerminal.js';

const OPEN_KEY = 'bough.openTerminals';
const branchByTerminal = new WeakMap<vscode.Terminal, string>();

/** @returns the id of the branch that runs in this terminal. */
export function branchOfTerminal(terminal: vscode.Terminal): string | undefined {
  return branchByTerminal.get(terminal);
}

function remembered(context: BoughContext): readonly string[] {
  return context.windowState.get<readonly string[]>(OPEN_KEY, []);
}

function remember(context: BoughContext, ids: readonly string[]): void {
  void context.windowState.update(OPEN_KEY, [...new Set(ids)]);
}

/** Makes the branch's terminal, or finds it; does not show it. */
function terminalOf(context: BoughContext, branch: Branch): vscode.Terminal {
  const open = vscode.window.terminals.find((terminal) => branchByTerminal.get(terminal) === branch.id);
  if (open) return open;
  const pty = new BranchTerminal(context, branch.id, () => {
    remember(
      context,
      remembered(context).filter((id) => id !== branch.id),
    );
  });
  const terminal = vscode.window.createTerminal({
    name: branch.name,
    pty,
    iconPath: new vscode.ThemeIcon('git-branch'),
  });
  branchByTerminal.set(terminal, branch.id);
  remember(context, [...remembered(context), branch.id]);
  return terminal;
}

/** Shows the branch's terminal. The keyboard goes there only where the person asked for a terminal to type in. */
export function showTerminal(context: BoughContext, branch: Branch, takeFocus: boolean): void {
  terminalOf(context, branch).show(!takeFocus);
}

export function registerTerminals(context: BoughContext): void {
  // After a reload: the same terminals, in the background.
  let restored = false;
  context.own(
    context.model.onDidChange(() => {
      if (restored || context.model.problem || !vscode.workspace.isTrusted) return;
      restored = true;
      for (const id of remembered(context)) {
        const branch = context.model.branch(id);
        if (branch) terminalOf(context, branch);
      }
      remember(
        context,
        remembered(context).filter((id) => context.model.branch(id)),
      );
    }),
  );
  // A branch that is gone leaves no terminal behind.
  context.own(
    context.model.onDidChange(() => {
      if (context.model.problem) return;
      for (const terminal of vscode.window.terminals) {
        const id = branchByTerminal.get(terminal);
        if (id !== undefined && !context.model.branch(id)) terminal.dispose();
      }
    }),
  );
}
