// Errors of the disk under the helper's own state, in words for a person: Node and lmdb say only ENOSPC. Used by helper/api where
// answers leave.
import { BoughError } from '../protocol/failure.js';

/** Numbers of Linux, as lmdb gives them (errno(3)). */
const names = new Map<unknown, string>([
  [28, 'ENOSPC'],
  [30, 'EROFS'],
  [122, 'EDQUOT'],
]);

/** The error as a person should see it; null when it is about something else. */
export function diskFailure(error: unknown): BoughError | null {
  if (!(error instanceof Error) || !('code' in error)) return null;
  const code = names.get(error.code) ?? error.code;
  const path = 'path' in error && typeof error.path === 'string' ? ` (${error.path})` : '';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const why = code === 'EDQUOT' ? 'the quota of its user is used up' : 'it is full';
    return new BoughError(
      'E_NO_SPACE',
      `The disk under Bough’s state cannot take more: ${why}${path}. Nothing was begun, or it was taken back.`,
      { fix: 'Make room there (discarding a branch gives its space back), then repeat it.' },
      { cause: error },
    );
  }
  if (code === 'EROFS') {
    return new BoughError(
      'E_READ_ONLY',
      `The disk under Bough’s state is mounted read-only${path}. Nothing was changed.`,
      { fix: 'Mount it writable, or set XDG_STATE_HOME to a folder on another disk; then repeat it.' },
      { cause: error },
    );
  }
  return null;
}
