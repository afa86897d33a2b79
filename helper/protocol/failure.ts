// An error that a person can see: a stable code, what failed and why, and what to do. Thrown by the helper's services and, on
// the other side of the socket, by helper/api/client.ts with the same fields. Imports only shapes.
import type { ErrorData } from './rpc.js';

export type ErrorDetail = Omit<ErrorData, 'code'>;

export class BoughError extends Error {
  override readonly name = 'BoughError';

  /**
   * @param code stable, such as `E_CONFLICT`
   * @param message what failed and why, one sentence each
   * @param detail `fix`: what to do now; conflicts and paths where the code has them
   */
  constructor(
    readonly code: string,
    message: string,
    readonly detail: ErrorDetail = {},
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }

  /** As it travels in JSON-RPC's `error.data`. */
  get data(): ErrorData {
    return { code: this.code, ...this.detail };
  }
}

/** The code of an error: ours, or Node's (`ENOENT`), or `E_INTERNAL`. */
export function errorCode(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string')
    return error.code;
  return 'E_INTERNAL';
}
