// The demo's report for people, and the result of a demo that could not run. Used by main.ts.
import type { DemoResult } from './demo.js';

export interface Refusal {
  readonly ok: false;
  readonly mode: string;
  readonly branches: 0;
  readonly winner: null;
  readonly baseTestsPass: false;
  readonly states: Readonly<Record<string, string>>;
  readonly commitMs: null;
  readonly pauseMs: null;
  readonly leftovers: { readonly mounts: 0; readonly processes: 0; readonly files: 0; readonly bytes: 0 };
  readonly error: { readonly code: string; readonly message: string; readonly fix: string };
}

/** The same fields as of a run, so that a reader needs no second shape. */
export function refusal(mode: string, error: Refusal['error']): Refusal {
  return {
    ok: false,
    mode,
    branches: 0,
    winner: null,
    baseTestsPass: false,
    states: {},
    commitMs: null,
    pauseMs: null,
    leftovers: { mounts: 0, processes: 0, files: 0, bytes: 0 },
    error,
  };
}

export function reportText(result: DemoResult): string {
  const { leftovers, problems, states } = result;
  const stateList = Object.entries(states).map(([name, state]) => `${name} ${state}`);
  return [
    '',
    `winner     ${result.winner ?? 'none'}`,
    `states     ${stateList.join(', ')}`,
    `pause      ${result.pauseMs ?? '-'} ms`,
    `commit     ${result.commitMs ?? '-'} ms into the folder, ${result.commitIntoParentMs ?? '-'} ms into the session`,
    `leftovers  ${leftovers.mounts} mounts, ${leftovers.processes} processes, ${leftovers.files} files, ${leftovers.bytes} bytes`,
    `took       ${(result.tookMs / 1000).toFixed(1)} s`,
    ...problems.map((problem) => `PROBLEM    ${problem}`),
    result.ok ? 'ok' : 'not ok',
  ].join('\n');
}
