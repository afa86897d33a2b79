import { expect, test } from 'vitest';
import { doctorReport, helperFailureReport } from './report.js';

test('the worst comes first, each with its exact fix; a passed check shows no fix', () => {
  const text = doctorReport([
    { id: 'node', title: 'Node.js', status: 'pass', detail: 'v20', fix: 'never shown' },
    { id: 'kvm', title: 'KVM', status: 'warn', detail: 'no /dev/kvm', fix: 'modprobe kvm' },
    { id: 'fuse', title: 'FUSE', status: 'fail', detail: '/dev/fuse is missing', fix: 'modprobe fuse' },
  ]);
  expect(text).toBe(
    [
      '# Bough: Doctor',
      '',
      'Bough cannot do its whole work here: see the fixes below. 1 passed, 1 warnings, 1 failed, 0 skipped.',
      '',
      '## ✘ FAIL: FUSE (fuse)',
      '',
      '/dev/fuse is missing',
      '',
      'Fix: modprobe fuse',
      '',
      '## ▲ warn: KVM (kvm)',
      '',
      'no /dev/kvm',
      '',
      'Fix: modprobe kvm',
      '',
      '## ✔ pass: Node.js (node)',
      '',
      'v20',
      '',
    ].join('\n'),
  );
});

test('a helper that does not answer is itself the finding', () => {
  expect(helperFailureReport('It ended.', undefined)).toContain('## ✘ FAIL: The helper answers (helper)\n\nIt ended.');
});
