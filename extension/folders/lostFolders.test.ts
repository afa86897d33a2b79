import { expect, test } from 'vitest';
import { folderWasLost } from './lostFolders.js';

const opening = { folder: '/state/mounts/b1', atMs: 1_000_000 };
const file = JSON.stringify({
  folders: [{ path: '/home/me/shop' }, { name: 'shell-1 (branch)', uri: 'vscode-remote://host/state/mounts/b1' }],
});

test('an empty window whose file names the folder opened a moment ago has lost it', () => {
  expect(folderWasLost(opening, 0, file, 1_005_000)).toBe(true);
});

test('a window is left alone when it shows a folder, was emptied by the person, or is of another time', () => {
  expect(folderWasLost(opening, 2, file, 1_005_000)).toBe(false);
  expect(folderWasLost(opening, 0, '{"folders":[]}', 1_005_000)).toBe(false);
  expect(folderWasLost(opening, 0, 'not JSON', 1_005_000)).toBe(false);
  expect(folderWasLost(opening, 0, file, 9_000_000)).toBe(false);
  expect(folderWasLost(undefined, 0, file, 1_005_000)).toBe(false);
});
