// Which changed files the person has ticked as reviewed. A tick holds for the file as it was then: once the file changes, it
// is gone. Kept in the editor's own storage, by branch. Used by the tree.
import type { Change } from '../../helper/protocol/boughfs.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { toBoughError } from '../connection/error.js';
import type { Helper } from '../connection/helper.js';
import { pathKey } from '../diff/paths.js';

/** Ticked paths of one branch, each with what the file was like. */
type Marks = Readonly<Record<string, string>>;

/** The part of the editor's storage that is needed. */
export interface Memory {
  get(key: string): unknown;
  update(key: string, value: unknown): Thenable<void>;
}

const PREFIX = 'bough.reviewed.';

export class Reviewed {
  /** When a branch's ticks were compared with its files, and what came out. */
  private readonly compared = new Map<string, { readonly when: string; readonly paths: ReadonlySet<string> }>();
  /** Branches and the folders they are of. */
  private seen = new Map<string, string>();

  constructor(
    private readonly helper: Pick<Helper, 'request'>,
    private readonly memory: Memory,
  ) {}

  count(branch: Branch): number {
    return Object.keys(this.marks(branch.id)).length;
  }

  async mark(branch: Branch, change: Change, reviewed: boolean): Promise<void> {
    const { [pathKey(change.path)]: _, ...others } = this.marks(branch.id);
    const look = reviewed ? await this.look(branch, change) : undefined;
    await this.store(branch.id, look === undefined ? others : { ...others, [pathKey(change.path)]: look });
  }

  /**
   * The ticked ones among `changes`, after those that changed since lost their tick.
   * @param complete `changes` are all of the branch: a tick of anything else is of a file that is as it was at first.
   */
  async stillSo(branch: Branch, changes: readonly Change[], complete: boolean): Promise<ReadonlySet<string>> {
    const marks = this.marks(branch.id);
    if (Object.keys(marks).length === 0) return new Set();
    const when = `${branch.edits} ${changes.length}`;
    const known = this.compared.get(branch.id);
    if (known?.when === when) return known.paths;
    const looks = new Map(
      await Promise.all(
        changes
          .filter((change) => marks[pathKey(change.path)] !== undefined)
          .map(async (change) => [pathKey(change.path), await this.look(branch, change)] as const),
      ),
    );
    const holds = ([path, mark]: readonly [string, string]) => (looks.has(path) ? looks.get(path) === mark : !complete);
    const kept = Object.entries(marks).filter(holds);
    if (kept.length < Object.keys(marks).length) await this.store(branch.id, Object.fromEntries(kept));
    const paths = new Set(kept.map(([path]) => path).filter((path) => looks.has(path)));
    this.compared.set(branch.id, { when, paths });
    return paths;
  }

  /**
   * A discarded branch leaves nothing behind.
   * @param folders those whose branches are known now; a branch of another folder may well be alive.
   */
  forgetDiscarded(branches: readonly Branch[], folders: readonly string[]): void {
    const now = new Map(branches.map(({ id, workspace }) => [id, workspace]));
    for (const [id, folder] of this.seen) if (!now.has(id) && folders.includes(folder)) void this.store(id, {});
    this.seen = now;
  }

  private marks(branch: string): Marks {
    return (this.memory.get(PREFIX + branch) as Marks | undefined) ?? {};
  }

  private async store(branch: string, marks: Marks): Promise<void> {
    this.compared.delete(branch);
    await this.memory.update(PREFIX + branch, Object.keys(marks).length === 0 ? undefined : marks);
  }

  /** What a file is like, so that each later edit makes it another. */
  private async look(branch: Branch, { path, kind }: Change): Promise<string> {
    if (kind === 'deleted') return 'deleted';
    try {
      const stat = await this.helper.request('bough/stat', { side: 'branch', branch: branch.id, path });
      return `${stat.type} ${stat.mode} ${stat.size} ${stat.mtimeMs}`;
    } catch (error) {
      if (toBoughError(error).code === 'E_NO_PATH') return 'deleted';
      throw error;
    }
  }
}
