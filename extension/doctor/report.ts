// The doctor's report as text: each prerequisite, how it stands, and the exact fix. Pure; used by doctor.ts.
import type { DoctorCheck } from '../../helper/protocol/rpc.js';

const MARKS: Readonly<Record<DoctorCheck['status'], string>> = {
  pass: '✔ pass',
  warn: '▲ warn',
  fail: '✘ FAIL',
  skip: '– skip',
};

const ORDER: readonly DoctorCheck['status'][] = ['fail', 'warn', 'pass', 'skip'];

function summary(checks: readonly DoctorCheck[]): string {
  const count = (status: DoctorCheck['status']) => checks.filter((check) => check.status === status).length;
  const failed = count('fail');
  const parts = [
    `${count('pass')} passed`,
    `${count('warn')} warnings`,
    `${failed} failed`,
    `${count('skip')} skipped`,
  ];
  const verdict =
    failed === 0 ? 'Bough can work on this machine.' : 'Bough cannot do its whole work here: see the fixes below.';
  return `${verdict} ${parts.join(', ')}.`;
}

/** Worst first; within a status in the helper's order. */
export function doctorReport(checks: readonly DoctorCheck[]): string {
  const lines = ['# Bough: Doctor', '', summary(checks), ''];
  for (const status of ORDER) {
    for (const check of checks.filter((candidate) => candidate.status === status)) {
      lines.push(`## ${MARKS[status]}: ${check.title} (${check.id})`, '');
      if (check.detail !== '') lines.push(check.detail, '');
      if (check.fix !== '' && status !== 'pass') lines.push(`Fix: ${check.fix}`, '');
    }
  }
  return lines.join('\n');
}

/** When not even the helper answers: that is the finding. */
export function helperFailureReport(message: string, fix: string | undefined): string {
  return doctorReport([
    {
      id: 'helper',
      title: 'The helper answers',
      status: 'fail',
      detail: message,
      fix: fix ?? 'Look at the "Bough" output channel ("Bough: Show Log").',
    },
  ]);
}
