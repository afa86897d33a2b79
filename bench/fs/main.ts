// The benchmark of the file system: branch points and commits through the socket, then what programs feel, against the plain
// file system, the kernel's overlayfs and (where it is installed) fuse-overlayfs, all in one run on one scratch folder.
import { copyFileSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { run, Scratch } from '../../test/harness.js';
import { machine, type Report, type Row } from '../rows.js';
import { branchRows } from './branches.js';
import { fileRows } from './files.js';
import { Probe } from './probe.js';
import { programRows } from './programs.js';

export interface Bench {
  readonly scratch: Scratch;
  readonly probe: Probe;
  readonly quick: boolean;
  /** Whether a row is asked for. */
  readonly wants: (id: string) => boolean;
  readonly rows: Row[];
}

/** Files in folders of 100, small ones, like a source tree. */
export function manyFiles(folder: string, count: number): void {
  for (let i = 0; i < count; i++) {
    const dir = join(folder, `d${String(Math.floor(i / 100))}`);
    if (i % 100 === 0) mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, `file${String(i)}.txt`), `content of file ${String(i)}\n`);
  }
}

/** `count` files of 1 MiB, f0, f1, … */
export function megabyteFiles(folder: string, count: number): void {
  mkdirSync(folder, { recursive: true });
  const first = join(folder, 'f0');
  writeFileSync(first, Buffer.alloc(1 << 20, 'm'));
  for (let i = 1; i < count; i++) copyFileSync(first, join(folder, `f${String(i)}`));
}

function fileSystemOf(folder: string): string {
  const names: Readonly<Record<number, string>> = {
    0xef53: 'ext4',
    0x9123683e: 'btrfs',
    0x58465342: 'xfs',
    0x01021994: 'tmpfs',
    0x794c7630: 'overlayfs',
  };
  return names[statfsSync(folder).type] ?? 'another file system';
}

export async function benchFs(quick: boolean, only: readonly string[]): Promise<Report> {
  const scratch = new Scratch('bench', process.env['BOUGH_BENCH_DIR'] ?? tmpdir());
  const rows: Row[] = [];
  const wants = (id: string) => only.length === 0 || only.some((prefix) => id.startsWith(prefix));
  try {
    const probe = await Probe.build();
    const bench: Bench = { scratch, probe, quick, wants, rows };
    await branchRows(bench);
    await fileRows(bench);
    await programRows(bench);
    return { ok: rows.every((row) => row.holds), machine: machine(fileSystemOf(scratch.path)), rows };
  } finally {
    await scratch.remove();
  }
}

/** The path of a program on this machine, or null. */
export async function installed(program: string): Promise<string | null> {
  const found = await run('sh', ['-c', `command -v ${program}`]);
  return found.status === 0 ? found.out.trim() : null;
}
