// The audit log of a workspace: one JSON line for each thing that changed it or ran in it, with its outcome. No contents, no
// hints, no arguments, no environment: nothing that could hold a secret. Used by the services; read by `bough/audit`.
import { appendFileSync, existsSync, readFileSync, renameSync, statSync } from 'node:fs';
import { errorCode } from '../protocol/failure.js';

const LIMIT = 4 * 1024 * 1024;

export interface AuditSubject {
  readonly what: string;
  readonly branch?: string;
  readonly [detail: string]: string | number | boolean | undefined;
}

export interface AuditEntry extends AuditSubject {
  /** `ok` or the code of an error. */
  readonly outcome: string;
}

export class Audit {
  constructor(private readonly path: string) {}

  add(entry: AuditEntry): void {
    try {
      if (existsSync(this.path) && statSync(this.path).size > LIMIT) renameSync(this.path, `${this.path}.1`);
      appendFileSync(this.path, `${JSON.stringify({ at: new Date().toISOString(), ...entry })}\n`, { mode: 0o600 });
    } catch {
      // A full disk must not stop an abort that frees it.
    }
  }

  /** Runs the action and notes how it ended. */
  async around<T>(entry: AuditSubject, action: () => Promise<T>): Promise<T> {
    try {
      const result = await action();
      this.add({ ...entry, outcome: 'ok' });
      return result;
    } catch (error) {
      this.add({ ...entry, outcome: errorCode(error) });
      throw error;
    }
  }

  /** The newest lines, oldest of them first. */
  last(limit: number): string[] {
    const lines = [`${this.path}.1`, this.path]
      .filter((path) => existsSync(path))
      .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
      .filter((line) => line !== '');
    return lines.slice(-limit);
  }
}
