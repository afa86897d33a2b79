// A window that came back without its folders. Where the workspace file lies on a remote machine, as in VS Code in a browser,
// the editor may show a new workspace as empty though its file names the folders: it compares two readings that race. The
// second loading is right. Pure; used by openFolder.ts.

/** How long after Open Branch as Workspace Folder an empty window is its doing. */
const RECENT_MS = 10 * 60_000;

/** What is remembered before the window is given its second folder. */
export interface Opening {
  /** The branch's folder. */
  readonly folder: string;
  readonly atMs: number;
}

/**
 * True when the window must be loaded again: it shows no folder, and its workspace file names the one that was opened a
 * moment ago.
 * @param workspaceFile content of the window's workspace file
 */
export function folderWasLost(
  opening: Opening | undefined,
  shown: number,
  workspaceFile: string,
  nowMs: number,
): boolean {
  if (opening === undefined || shown > 0 || nowMs - opening.atMs > RECENT_MS) return false;
  try {
    const parsed: unknown = JSON.parse(workspaceFile);
    if (typeof parsed !== 'object' || parsed === null || !('folders' in parsed) || !Array.isArray(parsed.folders))
      return false;
    // A folder is written with its path, or with an address that ends in it.
    return parsed.folders.some((entry: unknown) => JSON.stringify(entry).includes(opening.folder));
  } catch {
    // Not a file that the editor just wrote.
    return false;
  }
}
