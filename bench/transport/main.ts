// The FUSE transport alone: a small file system in memory behind ours and, where BOUGH_FUSE_NATIVE names a folder with the npm
// package fuse-native in its node_modules (and libfuse 2 is installed), the same behind that.
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, Scratch } from '../../test/harness.js';
import { Probe } from '../fs/probe.js';
import { machine, within, type Report, type Row } from '../rows.js';

interface Served {
  readonly path: string;
  stop(): Promise<void>;
}

async function serve(path: string, program: string, args: readonly string[]): Promise<Served> {
  const child = spawn(program, [...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (/^ready$/m.test(said)) resolve();
    });
    child.once('error', reject);
    void ended.then(() => reject(new Error(`${program} ended before it was ready: ${said}`)));
  });
  return {
    path,
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}

export async function benchTransport(quick: boolean, only: readonly string[]): Promise<Report> {
  const scratch = new Scratch('transport', tmpdir());
  const rows: Row[] = [];
  try {
    const probe = await Probe.build();
    const served: Record<'bough' | 'fuse-native', Served | null> = { bough: null, 'fuse-native': null };
    const ours = scratch.folder('ours');
    served.bough = await serve(ours, join(root, 'build', 'release', 'fuse_memory_mount'), [ours]);
    const folder = process.env['BOUGH_FUSE_NATIVE'];
    if (folder !== undefined && folder !== '') {
      const theirs = scratch.folder('theirs');
      const script = join(root, 'bench', 'transport', 'fuse-native.cjs');
      served['fuse-native'] = await serve(theirs, process.execPath, [script, folder, theirs]);
    }
    try {
      const samples = async (place: Served | null) =>
        place === null
          ? null
          : (await probe.samples('create', place.path, quick ? 500 : 3000)).map((nanoseconds) => nanoseconds / 1000);
      const id = 'transport-create-write-1KiB';
      if (only.length === 0 || only.some((prefix) => id.startsWith(prefix))) {
        rows.push(
          within(1, {
            id,
            unit: 'µs',
            samples: (await samples(served.bough)) ?? [],
            peer: 'fuse-native',
            peerSamples: await samples(served['fuse-native']),
          }),
        );
      }
    } finally {
      await served.bough.stop();
      await served['fuse-native']?.stop();
    }
    return { ok: rows.every((row) => row.holds), machine: machine('in memory'), rows };
  } finally {
    await scratch.remove();
  }
}
