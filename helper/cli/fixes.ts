// What to do about errors that come without a fix of their own: the file server knows what failed, the command line knows
// which command helps. Used by outcome.ts.

const fixes: Readonly<Record<string, string>> = {
  E_BAD_REQUEST: 'See how it is used with: bough help',
  E_BOUGHFS_GONE: 'Repeat it: the file server is started again by itself.',
  E_CANCELLED: 'Repeat it when you want it done.',
  E_CONFLICT: 'Choose a side of each path with: bough resolve BRANCH PATH --take ours (or theirs)',
  E_HAS_CHILDREN: 'Drop the branches below it, too, with: bough abort --recursive',
  E_IO: 'Look at the disk, and at the last lines of the log beside the store; then repeat it.',
  E_MOUNT: 'See what is missing with: bough doctor',
  E_NO_BRANCH: 'See the branches with: bough ls',
  E_NO_COMMIT: 'See what can be undone with: bough ls --json',
  E_NO_PATH: 'See what is there with: bough show BRANCH .',
  E_NO_SPACE: 'Make room on the disk, then repeat it: nothing was changed.',
  E_QUOTA: 'Remove what the branch does not need, or raise its quota.',
  E_READ_ONLY: 'Make the path writable, then repeat it: nothing was changed.',
  E_BASE_GONE: 'Bring the folder back, then repeat it.',
  E_STATE: 'See the state of the branches with: bough ls',
  E_STORE_BUSY: 'End the other one with: bough shutdown',
  E_STOPPED: 'Repeat it when you want it done.',
  E_TOO_BIG: 'Look at the file in the folder that this prints: bough mount BRANCH',
  E_UNDO_CONFLICT: 'Put these paths back as the commit left them, then undo again.',
};

export function fixFor(code: string): string {
  return fixes[code] ?? 'See what is wrong with: bough doctor';
}
