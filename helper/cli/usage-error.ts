// Wrong use of the command line: nothing was asked of the helper. Used by the commands.
import { BoughError } from '../api/client.js';

export function usageError(message: string, fix: string): BoughError {
  return new BoughError('E_USAGE', message, { fix });
}
