// Rows of bench/fs about branches: making, committing and giving them up, as a client of the socket sees it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, type Server } from '../../test/harness.js';
import { limit, within } from '../rows.js';
import { manyFiles, type Bench } from './main.js';
import { branch, serve } from './places.js';
import type { Control } from './probe.js';

const CREATE = { p50: 100, p99: 300 };

interface Made {
  readonly us: number;
  readonly id: string;
}

async function create(control: Control, parent: string): Promise<Made> {
  const { us, result } = await control.request('branch.create', { parent, count: 1, group: 'independent' });
  const [info] = result['branches'] as { id: string }[];
  return { us, id: info?.id ?? '' };
}

/** Makes branches of one parent, and gives them up again; both timed. */
async function createAndAbort(
  bench: Bench,
  control: Control,
  parent: string,
): Promise<{ create: number[]; abort: number[] }> {
  const times = { create: [] as number[], abort: [] as number[] };
  const count = bench.quick ? 100 : 1000;
  for (let i = 0; i < count + 10; i++) {
    const made = await create(control, parent);
    const gone = await control.request('branch.abort', { branch: made.id });
    if (i < 10) continue; // the first ones warm up
    times.create.push(made.us);
    times.abort.push(gone.us);
  }
  return times;
}

async function overBase(bench: Bench, files: number): Promise<void> {
  const id = `create-branch/base-${String(files)}`;
  const abortId = 'abort';
  if (!bench.wants(id) && !(files === 10 && bench.wants(abortId))) return;
  const base = bench.scratch.folder(`base-${String(files)}`);
  manyFiles(base, files);
  const server = await serve(bench.scratch, base);
  const control = bench.probe.control(server.options.socket);
  try {
    const times = await createAndAbort(bench, control, 'base');
    bench.rows.push(limit(CREATE, { id, unit: 'µs', samples: times.create }));
    if (files === 10) bench.rows.push(limit({ p50: 70 }, { id: abortId, unit: 'µs', samples: times.abort }));
  } finally {
    control.close();
    await server.stop();
  }
}

async function overDelta(bench: Bench, files: number): Promise<void> {
  const id = `create-branch/delta-${String(files)}`;
  if (!bench.wants(id)) return;
  const server = await serve(bench.scratch, bench.scratch.folder(`delta-base-${String(files)}`));
  const control = bench.probe.control(server.options.socket);
  try {
    const parent = await branch(server, bench.scratch);
    manyFiles(parent.path, files);
    const times = await createAndAbort(bench, control, parent.id);
    bench.rows.push(limit(CREATE, { id, unit: 'µs', samples: times.create }));
  } finally {
    control.close();
    await server.stop();
  }
}

async function deep(bench: Bench, levels: number): Promise<void> {
  const id = `create-branch/depth-${String(levels)}`;
  if (!bench.wants(id)) return;
  const server = await serve(bench.scratch, bench.scratch.folder('deep-base'));
  const control = bench.probe.control(server.options.socket);
  try {
    const first = await branch(server, bench.scratch);
    manyFiles(first.path, 100);
    let parent = first.id;
    for (let level = 0; level < levels; level++) parent = (await create(control, parent)).id;
    const times = await createAndAbort(bench, control, parent);
    bench.rows.push(limit(CREATE, { id, unit: 'µs', samples: times.create }));
  } finally {
    control.close();
    await server.stop();
  }
}

/** Commits of children into their parent; each child gets its delta from a branch that has it, so no mount is needed. */
async function commitIntoBranch(
  bench: Bench,
  what: string,
  path: string,
  server: Server,
  source: string,
): Promise<void> {
  const id = `commit-into-branch/${what}`;
  if (!bench.wants(id)) return;
  const control = bench.probe.control(server.options.socket);
  try {
    const samples: number[] = [];
    const parent = await create(control, 'base');
    for (let i = 0; i < (bench.quick ? 50 : 300); i++) {
      const child = await create(control, parent.id);
      await control.request('branch.take', { branch: child.id, from: source, paths: [path] });
      samples.push((await control.request('branch.commit', { branch: child.id })).us);
      await control.request('branch.revert', { branch: parent.id, paths: [path] }).catch(() => undefined);
    }
    bench.rows.push(limit({ p50: 100 }, { id, unit: 'µs', samples: samples.slice(5) }));
  } finally {
    control.close();
  }
}

async function commits(bench: Bench): Promise<void> {
  const files = bench.quick ? 200 : 1000;
  const ids = ['commit-into-branch/1-file', `commit-into-branch/${String(files)}-files`];
  if (!ids.some((id) => bench.wants(id))) return;
  const server = await serve(bench.scratch, bench.scratch.folder('commit-base'));
  try {
    const source = await branch(server, bench.scratch);
    writeFileSync(join(source.path, 'one'), 'x'.repeat(1024));
    manyFiles(join(source.path, 'many'), files);
    await commitIntoBranch(bench, '1-file', 'one', server, source.id);
    await commitIntoBranch(bench, `${String(files)}-files`, 'many', server, source.id);
  } finally {
    await server.stop();
  }
}

/** A durable commit into the base against the bare write, fsync and rename of the same files. */
async function commitIntoBase(bench: Bench): Promise<void> {
  const count = bench.quick ? 20 : 100;
  const id = `commit-into-base/${String(count)}-files`;
  if (!bench.wants(id)) return;
  const base = bench.scratch.folder('durable-base');
  const bare = bench.scratch.folder('durable-bare');
  const server = await serve(bench.scratch, base);
  const control = bench.probe.control(server.options.socket);
  try {
    const samples: number[] = [];
    const peer: number[] = [];
    for (let i = 0; i < (bench.quick ? 3 : 8); i++) {
      const source = await branch(server, bench.scratch);
      const folder = join(source.path, `round${String(i)}`);
      mkdirSync(folder);
      for (let n = 0; n < count; n++) writeFileSync(join(folder, `file${String(n)}`), 'd'.repeat(1024));
      await run('sync', ['-f', base]); // what was written before is no part of it
      samples.push((await control.request('branch.commit', { branch: source.id })).us / 1000);
      await run('sync', ['-f', base]);
      const plain = join(bare, `round${String(i)}`);
      mkdirSync(plain);
      peer.push(...(await bench.probe.samples('durable', plain, count)).map((ns) => ns / 1e6));
      await source.close();
    }
    bench.rows.push(within(1.5, { id, unit: 'ms', samples, peer: 'write+fsync+rename', peerSamples: peer }));
  } finally {
    control.close();
    await server.stop();
  }
}

export async function branchRows(bench: Bench): Promise<void> {
  await overBase(bench, 10);
  await overBase(bench, bench.quick ? 3000 : 100_000);
  await overDelta(bench, bench.quick ? 1000 : 100_000);
  await deep(bench, 100);
  await commits(bench);
  await commitIntoBase(bench);
}
