// The changed files of a branch, page by page, read again only when the branch changed. Used by the tree and the diffs.
import type { Change } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import type { Helper } from '../connection/helper.js';

export interface ChangePage {
  readonly changes: readonly Change[];
  readonly total: number;
  /** How many changed paths moved in the parent's folder since the branch was made. */
  readonly drifted: number;
}

/** Thousands of rows freeze a tree: it grows by this many at a time. */
export const PAGE = 200;

interface Kept {
  edits: number;
  shown: number;
  page: Promise<ChangePage>;
}

export class ChangeReader {
  private readonly kept = new Map<string, Kept>();

  constructor(private readonly helper: Helper) {}

  /** The first rows that the tree shows now (one page more after each `more`). */
  shown(branch: Branch): Promise<ChangePage> {
    const kept = this.kept.get(branch.id);
    if (kept?.edits === branch.edits) return kept.page;
    return this.read(branch, kept?.shown ?? PAGE);
  }

  more(branch: Branch): Promise<ChangePage> {
    return this.read(branch, (this.kept.get(branch.id)?.shown ?? PAGE) + PAGE);
  }

  /** Forgets branches that are gone. */
  keepOnly(branches: readonly Branch[]): void {
    const ids = new Set(branches.map((branch) => branch.id));
    for (const id of this.kept.keys()) if (!ids.has(id)) this.kept.delete(id);
  }

  /** At most `limit` changes, not kept. */
  async upTo(branch: Branch, limit: number, against?: string): Promise<ChangePage> {
    const params = { branch: branch.id, from: 0, limit, ...(against === undefined ? {} : { against }) };
    const { changes, total, drift } = await this.helper.request('bough/diff', params);
    return { changes, total, drifted: drift.changed.length };
  }

  private read(branch: Branch, shown: number): Promise<ChangePage> {
    const page = this.upTo(branch, shown);
    this.kept.set(branch.id, { edits: branch.edits, shown, page });
    // A failed reading must not be kept, or the tree would never try again.
    page.catch(() => this.kept.delete(branch.id));
    return page;
  }
}
