// How much each branch changed and where siblings overlap, read from boughfs only when a branch was edited since. Used for the
// lists of branches.
import type { BranchInfo } from '../protocol/boughfs.js';
import type { StoreLink } from '../files/store-link.js';
import { pathKey } from '../protocol/wire-path.js';

const PAGE = 5000;
/** An agent that writes all the time must not make the helper diff all the time. */
const REST_FACTOR = 10;

interface Delta {
  readonly edits: number;
  readonly point: string;
  readonly total: number;
  readonly paths: ReadonlySet<string>;
  readonly readAt: number;
  readonly tookMs: number;
}

export interface DeltaSummary {
  readonly changes: number | null;
  readonly overlaps: number;
}

export class Deltas {
  private readonly known = new Map<string, Delta>();
  private readonly reading = new Map<string, Promise<Delta | null>>();

  /** @param stale is called when a number was told that may be old, and again later */
  constructor(
    private readonly link: StoreLink,
    private readonly stale: () => void,
  ) {}

  async summaries(infos: readonly BranchInfo[]): Promise<Map<string, DeltaSummary>> {
    const deltas = new Map<string, Delta | null>();
    await Promise.all(infos.map(async (info) => deltas.set(info.id, await this.delta(info))));
    const touched = new Map<string, number>();
    for (const info of infos) {
      for (const path of deltas.get(info.id)?.paths ?? []) {
        const key = `${info.parent}\0${path}`;
        touched.set(key, (touched.get(key) ?? 0) + 1);
      }
    }
    return new Map(
      infos.map((info) => {
        const delta = deltas.get(info.id) ?? null;
        const shared = [...(delta?.paths ?? [])].filter((path) => (touched.get(`${info.parent}\0${path}`) ?? 0) > 1);
        return [info.id, { changes: delta?.total ?? null, overlaps: shared.length }];
      }),
    );
  }

  forget(branches: readonly string[]): void {
    for (const branch of branches) this.known.delete(branch);
  }

  /** The point moved: equal `edits` say nothing any more. */
  clear(): void {
    this.known.clear();
  }

  private async delta(info: BranchInfo): Promise<Delta | null> {
    const known = this.known.get(info.id);
    if (known?.edits === info.edits && known.point === pointOf(info)) return known;
    if (known?.point === pointOf(info) && Date.now() - known.readAt < known.tookMs * REST_FACTOR) {
      setTimeout(this.stale, known.tookMs * REST_FACTOR).unref();
      return known;
    }
    let reading = this.reading.get(info.id);
    if (!reading) {
      reading = this.read(info).finally(() => this.reading.delete(info.id));
      this.reading.set(info.id, reading);
    }
    return reading;
  }

  private async read(info: BranchInfo): Promise<Delta | null> {
    const start = Date.now();
    try {
      const { changes, total } = await this.link.request('branch.diff', { branch: info.id, limit: PAGE });
      const paths = new Set(changes.map((change) => pathKey(change.path)));
      const delta: Delta = {
        edits: info.edits,
        point: pointOf(info),
        total,
        paths,
        readAt: Date.now(),
        tookMs: Date.now() - start,
      };
      this.known.set(info.id, delta);
      return delta;
    } catch {
      return null;
    }
  }
}

/** Changes whenever the branch's point or standing does. */
function pointOf(info: BranchInfo): string {
  return `${info.state} ${info.commit ?? ''}`;
}
