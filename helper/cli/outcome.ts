// What a command gives back, and how it reaches the person or the program that asked: text, or one JSON object as the last
// line. Used by every command.
import { BoughError } from '../api/client.js';
import { fixFor } from './fixes.js';
import { pathText } from './path-text.js';

export interface Outcome {
  /** The exit status is 0 only if this is true. */
  readonly ok: boolean;
  /** Fields of the JSON object beside `ok`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** For people; empty: nothing is printed. */
  readonly text: string;
  /** Exit status of what was run; 1 when left out and not ok. */
  readonly status?: number;
}

export function printOutcome(outcome: Outcome, json: boolean): void {
  if (json) process.stdout.write(`${JSON.stringify({ ok: outcome.ok, ...outcome.fields })}\n`);
  else if (outcome.text !== '') process.stdout.write(`${outcome.text}\n`);
  process.exitCode = outcome.ok ? 0 : (outcome.status ?? 1);
}

/** An error as people and programs see it: code, what failed and why, what to do. */
export function printError(error: unknown, json: boolean): void {
  const { code, message, fix, lines, data } = describeError(error);
  if (json) process.stdout.write(`${JSON.stringify({ ok: false, error: data })}\n`);
  process.stderr.write(`bough: ${code}: ${message}\n`);
  for (const line of lines) process.stderr.write(`  ${line}\n`);
  process.stderr.write(`  fix: ${fix}\n`);
  process.exitCode = code === 'E_USAGE' ? 2 : 1;
}

interface DescribedError {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
  readonly lines: readonly string[];
  readonly data: object;
}

export function describeError(error: unknown): DescribedError {
  if (!(error instanceof BoughError)) {
    const message = error instanceof Error ? error.message : String(error);
    const code = 'E_INTERNAL';
    const fix = 'repeat it; if it fails again, report it with the last lines of the helper log';
    return { code, message, fix, lines: [], data: { code, message, fix } };
  }
  const { code, message, detail } = error;
  const fix = detail.fix ?? fixFor(code);
  const conflicts = (detail.conflicts ?? []).map(({ path, reason }) => `${pathText(path)}: ${reason}`);
  const paths = (detail.paths ?? []).map((path) => pathText(path));
  return {
    code,
    message,
    fix,
    lines: [...conflicts, ...paths],
    data: { code, message, ...detail, fix },
  };
}
