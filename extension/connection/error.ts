// Errors as a person sees them: a stable code, what failed, why, and what to do. Used by everything that asks the helper.
import { ResponseError } from 'vscode-jsonrpc';
import type { Conflict, WirePath } from '../../helper/protocol/boughfs.js';
import type { ErrorData } from '../../helper/protocol/rpc.js';

export class BoughError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly fix?: string,
    readonly conflicts: readonly Conflict[] = [],
    readonly paths: readonly WirePath[] = [],
  ) {
    super(message);
    this.name = 'BoughError';
  }

  /** One line for a message box. */
  get line(): string {
    const fix = this.fix && !this.message.includes(this.fix) ? ` ${this.fix}` : '';
    return `${this.message}${fix} (${this.code})`;
  }
}

function isErrorData(data: unknown): data is ErrorData {
  return typeof data === 'object' && data !== null && 'code' in data && typeof data.code === 'string';
}

/** Whatever was thrown, as an error with a code. */
export function toBoughError(thrown: unknown): BoughError {
  if (thrown instanceof BoughError) return thrown;
  if (thrown instanceof ResponseError || (thrown instanceof Error && 'data' in thrown)) {
    const data: unknown = thrown.data;
    if (isErrorData(data)) return new BoughError(data.code, thrown.message, data.fix, data.conflicts, data.paths);
  }
  return new BoughError('E_EXTENSION', thrown instanceof Error ? thrown.message : String(thrown));
}
