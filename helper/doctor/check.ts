// One answer of the doctor, and how a check gives it. Used by every file of this folder.
import type { DoctorCheck } from '../protocol/rpc.js';

export type Verdict = Omit<DoctorCheck, 'id' | 'title'>;

/** It is as it should be. */
export const pass = (detail: string): Verdict => ({ status: 'pass', detail, fix: '' });

/** Bough works, but slower or with less; `fix` says what to do about it. */
export const warn = (detail: string, fix: string): Verdict => ({ status: 'warn', detail, fix });

/** Bough cannot do its main job until it is fixed. */
export const fail = (detail: string, fix: string): Verdict => ({ status: 'fail', detail, fix });

/** It does not matter on this machine, or cannot be told. */
export const skip = (detail: string): Verdict => ({ status: 'skip', detail, fix: '' });

export interface Question {
  readonly id: string;
  readonly title: string;
  readonly ask: () => Verdict | Promise<Verdict>;
}

/** Asks; a check that throws is an answer too: the doctor must not die of what it looks at. */
export async function answer({ id, title, ask }: Question): Promise<DoctorCheck> {
  try {
    return { id, title, ...(await ask()) };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return {
      id,
      title,
      ...fail(`could not be checked: ${said}`, 'look at the message; if it makes no sense, report it'),
    };
  }
}
