// The doctor's report as a person reads it in a terminal. Used by the command line.
import type { DoctorCheck } from '../protocol/rpc.js';
import type { DoctorReport } from './doctor.js';

const marks: Readonly<Record<DoctorCheck['status'], string>> = {
  pass: 'ok  ',
  warn: 'warn',
  fail: 'FAIL',
  skip: 'skip',
};

export function doctorTable({ ok, checks }: DoctorReport): string {
  const width = Math.max(...checks.map(({ title }) => title.length));
  const lines = checks.flatMap(({ status, title, detail, fix }) => [
    `${marks[status]}  ${title.padEnd(width)}  ${detail}`,
    ...(fix === '' ? [] : [`      ${' '.repeat(width)}  fix: ${fix}`]),
  ]);
  const count = (wanted: DoctorCheck['status']) => checks.filter(({ status }) => status === wanted).length;
  const sum = `${count('pass')} ok, ${count('warn')} warnings, ${count('fail')} failed, ${count('skip')} skipped`;
  return [...lines, '', ok ? `Bough can run here: ${sum}.` : `Bough cannot run here yet: ${sum}.`].join('\n');
}
