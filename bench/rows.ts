// What a benchmark tells: rows with a value, a peer measured in the same run, a bar and whether it holds. Used by bench/main.ts
// and every benchmark.
import { cpus, release, totalmem } from 'node:os';

export interface Row {
  readonly id: string;
  readonly unit: string;
  readonly value: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly n: number;
  readonly peer: string;
  readonly peerValue: number | null;
  /** value ÷ peerValue, so that smaller is better; for throughput peerValue ÷ value. */
  readonly ratio: number | null;
  readonly bar: string;
  readonly holds: boolean;
}

export interface Report {
  readonly ok: boolean;
  readonly machine: Machine;
  readonly rows: readonly Row[];
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly fileSystem: string;
}

export function machine(fileSystem: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release().replace(/-.*/, ''),
    node: process.version,
    fileSystem,
  };
}

export function percentile(samples: readonly number[], percent: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100));
  return sorted[at] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => percentile(samples, 50);

const round = (value: number): number => Number(value.toPrecision(4));

interface Measured {
  readonly id: string;
  readonly unit: string;
  readonly samples: readonly number[];
  readonly peer: string;
  readonly peerSamples: readonly number[] | null;
}

function row(measured: Measured, ratio: number | null, bar: string, holds: boolean): Row {
  const { id, unit, samples, peer, peerSamples } = measured;
  return {
    id,
    unit,
    value: round(median(samples)),
    p50: round(median(samples)),
    p90: round(percentile(samples, 90)),
    p99: round(percentile(samples, 99)),
    n: samples.length,
    peer,
    peerValue: peerSamples === null ? null : round(median(peerSamples)),
    ratio: ratio === null ? null : round(ratio),
    bar,
    holds,
  };
}

/** Time: at most `times` the peer's. */
export function within(times: number, measured: Measured): Row {
  if (measured.peerSamples === null) return row(measured, null, `≤ ${String(times)} × ${measured.peer}`, true);
  const ratio = median(measured.samples) / median(measured.peerSamples);
  return row(measured, ratio, `≤ ${String(times)} × ${measured.peer}`, ratio <= times);
}

/** Throughput: at least this share of the peer's. */
export function atLeast(share: number, measured: Measured): Row {
  const peer = measured.peerSamples === null ? null : median(measured.peerSamples);
  const ratio = peer === null ? null : peer / median(measured.samples);
  return row(
    measured,
    ratio,
    `≥ ${String(Math.round(share * 100))} % of ${measured.peer}`,
    ratio === null || ratio <= 1 / share,
  );
}

/** Time: at most so much, in the row's unit, at each percentile named. */
export function limit(
  bars: Readonly<Partial<Record<'p50' | 'p99', number>>>,
  measured: Omit<Measured, 'peer' | 'peerSamples'>,
): Row {
  const holds =
    (bars.p50 === undefined || median(measured.samples) <= bars.p50) &&
    (bars.p99 === undefined || percentile(measured.samples, 99) <= bars.p99);
  const words = Object.entries(bars).map(([name, value]) => `${name} ≤ ${String(value)} ${measured.unit}`);
  return row({ ...measured, peer: 'none', peerSamples: null }, null, words.join(', '), holds);
}

export function printReport(report: Report): void {
  const { machine: m } = report;
  console.log(`${m.cpu}, ${String(m.cores)} cores, ${String(m.memoryGiB)} GiB, Linux ${m.kernel}, ${m.fileSystem}`);
  const cells = report.rows.map((each) => [
    each.holds ? 'holds' : 'MISSES',
    each.id,
    `${String(each.value)} ${each.unit}`,
    each.peerValue === null ? '' : `${each.peer} ${String(each.peerValue)}`,
    each.ratio === null ? '' : `× ${String(each.ratio)}`,
    each.bar,
  ]);
  const widths = [0, 1, 2, 3, 4, 5].map((column) => Math.max(...cells.map((line) => line[column]?.length ?? 0), 0));
  for (const line of cells)
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}
