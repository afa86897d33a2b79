// Rows of bench/fs about files: stat, listing, creation, first write, sequential data.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Server } from '../../test/harness.js';
import { atLeast, within, type Row } from '../rows.js';
import { manyFiles, megabyteFiles, type Bench } from './main.js';
import { branch, overlay, plain, serve, type View } from './places.js';

/** The three places over the same base files. `native` is a copy, so that it may be written to. */
interface Places {
  readonly server: Server;
  readonly native: View;
  readonly overlay: View | null;
  readonly bough: View;
  close(): Promise<void>;
}

async function over(bench: Bench, name: string, build: (folder: string) => void): Promise<Places> {
  const base = bench.scratch.folder(name, 'base');
  build(base);
  const copy = join(bench.scratch.folder(name), 'native');
  cpSync(base, copy, { recursive: true });
  const server = await serve(bench.scratch, base);
  const peer = await overlay(bench.scratch, base);
  return {
    server,
    native: plain(copy),
    overlay: peer,
    bough: await branch(server, bench.scratch),
    async close() {
      await peer?.close();
      await server.stop();
    },
  };
}

type Rowmaker = (bench: Bench) => Promise<Row>;

const micro = (samples: readonly number[]) => samples.map((ns) => ns / 1000);

async function statWarm(bench: Bench): Promise<Row> {
  const places = await over(bench, 'stat', (folder) => {
    manyFiles(folder, 1000);
  });
  try {
    const rounds = bench.quick ? 20 : 100;
    const samples = await bench.probe.samples('stat', places.bough.path, rounds);
    const peerSamples = await bench.probe.samples('stat', places.native.path, rounds);
    return within(1.3, { id: 'stat-warm', unit: 'ns', samples, peer: 'native', peerSamples });
  } finally {
    await places.close();
  }
}

async function cold(bench: Bench): Promise<Row> {
  const places = await over(bench, 'cold', (folder) => {
    manyFiles(folder, 10_000);
  });
  try {
    const rounds = bench.quick ? 2 : 5;
    const measure = async (view: View | null): Promise<number[] | null> => {
      if (view === null) return null;
      const samples: number[] = [];
      for (let i = 0; i < rounds; i++) {
        await view.cold();
        samples.push(...micro(await bench.probe.samples('cold', view.path)));
      }
      return samples;
    };
    return within(3, {
      id: 'stat-open-cold-10000',
      unit: 'µs per file',
      samples: (await measure(places.bough)) ?? [],
      peer: 'overlayfs',
      peerSamples: await measure(places.overlay),
    });
  } finally {
    await places.close();
  }
}

function listing(entries: number, depth: number): Rowmaker {
  return async (bench) => {
    const places = await over(bench, `list-${String(entries)}-${String(depth)}`, (folder) => {
      for (let i = 0; i < entries; i++) writeFileSync(join(folder, `entry${String(i)}`), '');
    });
    try {
      const rounds = bench.quick ? 20 : 200;
      let view: View & { readonly id?: string } = places.bough;
      for (let level = 1; level < depth; level++) {
        view = await branch(places.server, bench.scratch, view.id ?? 'base');
        writeFileSync(join(view.path, `own${String(level)}`), '');
      }
      const samples = micro(await bench.probe.samples('readdir', view.path, rounds));
      const peer = places.overlay;
      return within(2, {
        id: `readdir-${String(entries)}${depth > 1 ? `-depth-${String(depth)}` : ''}`,
        unit: 'µs',
        samples,
        peer: 'overlayfs',
        peerSamples: peer === null ? null : micro(await bench.probe.samples('readdir', peer.path, rounds)),
      });
    } finally {
      await places.close();
    }
  };
}

async function createSmall(bench: Bench): Promise<Row> {
  const places = await over(bench, 'create', (folder) => {
    mkdirSync(join(folder, 'd'), { recursive: true });
  });
  try {
    const count = bench.quick ? 500 : 5000;
    const samples = micro(await bench.probe.samples('create', join(places.bough.path, 'd'), count));
    const peerSamples = micro(await bench.probe.samples('create', join(places.native.path, 'd'), count));
    return within(3, { id: 'create-write-1KiB', unit: 'µs', samples, peer: 'native', peerSamples });
  } finally {
    await places.close();
  }
}

async function firstWrite(bench: Bench): Promise<Row> {
  const count = bench.quick ? 30 : 200;
  const places = await over(bench, 'first', (folder) => {
    megabyteFiles(folder, count);
  });
  try {
    const samples = micro(await bench.probe.samples('firstwrite', places.bough.path, count));
    const peer = places.overlay;
    return within(2, {
      id: 'first-write-1MiB',
      unit: 'µs',
      samples,
      peer: 'overlayfs',
      peerSamples: peer === null ? null : micro(await bench.probe.samples('firstwrite', peer.path, count)),
    });
  } finally {
    await places.close();
  }
}

async function sequential(bench: Bench): Promise<Row[]> {
  const places = await over(bench, 'sequential', () => undefined);
  try {
    const mib = bench.quick ? 256 : 1024;
    const rounds = bench.quick ? 2 : 3;
    const found = {
      write: [] as number[],
      nativeWrite: [] as number[],
      read: [] as number[],
      nativeRead: [] as number[],
    };
    for (let i = 0; i < rounds; i++) {
      // The second figure is with the fsync: the disk is part of it on both sides.
      found.write.push((await bench.probe.samples('seqwrite', join(places.bough.path, 'f'), mib))[1] ?? 0);
      found.nativeWrite.push((await bench.probe.samples('seqwrite', join(places.native.path, 'f'), mib))[1] ?? 0);
      await places.bough.cold(); // what was written is no longer in the mount's own page cache
      found.read.push(...(await bench.probe.samples('seqread', join(places.bough.path, 'f'))));
      found.nativeRead.push(...(await bench.probe.samples('seqread', join(places.native.path, 'f'))));
    }
    const row = (id: string, samples: number[], peerSamples: number[]) =>
      atLeast(0.5, { id, unit: 'MiB/s', samples, peer: 'native', peerSamples });
    const size = mib === 1024 ? '1GiB' : `${String(mib)}MiB`;
    return [
      row(`sequential-write-${size}`, found.write, found.nativeWrite),
      row(`sequential-read-${size}`, found.read, found.nativeRead),
    ];
  } finally {
    await places.close();
  }
}

const makers: Readonly<Record<string, Rowmaker>> = {
  'stat-warm': statWarm,
  'stat-open-cold-10000': cold,
  'readdir-100': listing(100, 1),
  'readdir-10000': listing(10_000, 1),
  'readdir-100-depth-20': listing(100, 20),
  'create-write-1KiB': createSmall,
  'first-write-1MiB': firstWrite,
};

export async function fileRows(bench: Bench): Promise<void> {
  for (const [id, make] of Object.entries(makers)) if (bench.wants(id)) bench.rows.push(await make(bench));
  if (bench.wants('sequential')) bench.rows.push(...(await sequential(bench)));
}
