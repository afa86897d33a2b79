// LSP's work-done progress for a request that takes over a second: begun late, so that quick answers show nothing, cancellable, and
// ended in any case. Used by rpc.ts.
import { randomUUID } from 'node:crypto';
import type { MessageConnection } from 'vscode-jsonrpc/node';

const PATIENCE_MS = 1000;
const TICK_MS = 1000;

export interface ProgressTarget {
  readonly connection: MessageConnection;
  /** The client said `window.workDoneProgress` when it was initialized. */
  readonly offered: boolean;
  /** Progress of the helper's own making, by token: what the client's Cancel button ends. */
  readonly cancels: Map<string, () => void>;
}

/** What a person reads while it runs; requests that are not here are quick or have a view of their own. */
const titles: Readonly<Record<string, string>> = {
  'bough/open': 'Opening the branches of this folder',
  'bough/start': 'Starting the agent',
  'bough/branch': 'Branching the agent',
  'bough/checks': 'Running the checks',
  'bough/commit': 'Committing',
  'bough/undo': 'Undoing the commit',
  'bough/rebase': 'Rebasing the branch',
  'bough/abort': 'Discarding the branch',
  'bough/gc': 'Removing leftovers',
};

/**
 * @param token the client's own, when it gave one
 * @param cancel called when the person presses Cancel
 * @returns how to end it
 */
export function watchProgress(
  target: ProgressTarget,
  method: string,
  token: string | number | undefined,
  cancel: () => void,
): () => void {
  const title = titles[method];
  if (title === undefined || (token === undefined && !target.offered)) return () => undefined;
  const used = token ?? randomUUID();
  const started = Date.now();
  let begun = false;
  let ticking: NodeJS.Timeout | null = null;
  const send = (value: Readonly<Record<string, unknown>>) =>
    void target.connection.sendNotification('$/progress', { token: used, value }).catch(() => undefined);
  const begin = async () => {
    if (token === undefined) {
      target.cancels.set(String(used), cancel);
      await target.connection.sendRequest('window/workDoneProgress/create', { token: used });
    }
    if (ended) return;
    begun = true;
    send({ kind: 'begin', title, cancellable: true });
    ticking = setInterval(
      () => send({ kind: 'report', message: `${Math.round((Date.now() - started) / 1000)} s` }),
      TICK_MS,
    );
  };
  let ended = false;
  const patience = setTimeout(() => void begin().catch(() => undefined), PATIENCE_MS);
  return () => {
    ended = true;
    clearTimeout(patience);
    if (ticking) clearInterval(ticking);
    target.cancels.delete(String(used));
    if (begun) send({ kind: 'end' });
  };
}
