// What the helper must remember over a restart and boughfs does not know: workspaces, hints, agents, runs, checks. An lmdb with
// one record per thing; every write is on disk when it returns. Used by the services, one helper at a time (api/lock.ts).
import { open, type RootDatabase } from 'lmdb';
import type { CheckRun, MachineKind } from '../protocol/rpc.js';
import type { ProcessId } from './process-id.js';

/** Version of the records below; a database of a later one is not opened. */
const FORMAT = 1;

export interface WorkspaceRecord {
  readonly folder: string;
  /** Command of the checks, as last used. */
  readonly checks: string | null;
}

export interface BranchRecord {
  /** `making` until its agent has started: a helper that died in between undoes it. */
  readonly phase: 'making' | 'ready';
  readonly hint: string;
  readonly agent: string;
  /** Of an agent of the person's own. */
  readonly command: readonly string[] | null;
  readonly machine: MachineKind;
  readonly network: boolean;
  /** Init of the agent's PID namespace while it runs. */
  readonly run: ProcessId | null;
  readonly exitCode: number | null;
  readonly note: string | null;
  readonly checks: CheckRun | null;
}

type Key = [kind: string, ...rest: string[]];

export class Database {
  private constructor(private readonly db: RootDatabase<unknown, Key>) {}

  /** @param path a folder; made when it is not there */
  static open(path: string): Database {
    const db = open<unknown, Key>({ path, mapSize: 1 << 28, maxReaders: 16 });
    const made = new Database(db);
    const format = db.get(['format']) as number | undefined;
    if (format !== undefined && format > FORMAT) {
      throw new Error(`${path} was written by a newer Bough (format ${format}); this one knows ${FORMAT}.`);
    }
    if (format === undefined) db.putSync(['format'], FORMAT);
    return made;
  }

  async close(): Promise<void> {
    await this.db.close();
  }

  workspaces(): Map<string, WorkspaceRecord> {
    return new Map(this.range('workspace').map(({ key, value }) => [key[1] ?? '', value as WorkspaceRecord]));
  }

  putWorkspace(hash: string, record: WorkspaceRecord): void {
    this.db.putSync(['workspace', hash], record);
  }

  branches(hash: string): Map<string, BranchRecord> {
    return new Map(this.range('branch', hash).map(({ key, value }) => [key[2] ?? '', value as BranchRecord]));
  }

  branch(hash: string, branch: string): BranchRecord | undefined {
    return this.db.get(['branch', hash, branch]) as BranchRecord | undefined;
  }

  putBranches(hash: string, records: ReadonlyMap<string, BranchRecord>): void {
    this.db.transactionSync(() => {
      for (const [branch, record] of records) void this.db.put(['branch', hash, branch], record);
    });
  }

  /** Changes a record that is there; one that was removed meanwhile stays removed. */
  updateBranch(hash: string, branch: string, change: Partial<BranchRecord>): void {
    this.db.transactionSync(() => {
      const before = this.branch(hash, branch);
      if (before) void this.db.put(['branch', hash, branch], { ...before, ...change });
    });
  }

  removeBranches(hash: string, branches: readonly string[]): void {
    this.db.transactionSync(() => {
      for (const branch of branches) void this.db.remove(['branch', hash, branch]);
    });
  }

  private range(...prefix: Key): { key: Key; value: unknown }[] {
    const result: { key: Key; value: unknown }[] = [];
    for (const { key, value } of this.db.getRange({ start: prefix })) {
      if (!prefix.every((part, index) => key[index] === part)) break;
      result.push({ key, value });
    }
    return result;
  }
}
