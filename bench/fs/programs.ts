// Rows of bench/fs about whole programs: git status, npm ci, tsc, rm -rf, against overlayfs and fuse-overlayfs.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run, writeTree } from '../../test/harness.js';
import { within, type Row } from '../rows.js';
import { installed, manyFiles, type Bench } from './main.js';
import { branch, overlay, serve, type View } from './places.js';

const environment = {
  ...process.env,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@b',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@b',
};

async function ok(program: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): Promise<void> {
  const done = await run(program, args, { cwd, env: { ...environment, ...more } });
  if (done.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${done.out}${done.err}`);
}

async function milliseconds(
  program: string,
  args: readonly string[],
  cwd: string,
  more: NodeJS.ProcessEnv = {},
): Promise<number> {
  const start = performance.now();
  await ok(program, args, cwd, more);
  return performance.now() - start;
}

interface Program {
  readonly id: string;
  readonly rounds: number;
  build(base: string): Promise<void>;
  /** One round on a fresh view; milliseconds. */
  measure(folder: string): Promise<number>;
}

async function tarballs(folder: string, packages: number): Promise<Record<string, string>> {
  const dependencies: Record<string, string> = {};
  mkdirSync(join(folder, 'tarballs'), { recursive: true });
  for (let i = 0; i < packages; i++) {
    const name = `package-${String(i)}`;
    const files: Record<string, string> = {
      'package.json': JSON.stringify({ name, version: '1.0.0', main: 'lib/0.js' }),
    };
    for (let n = 0; n < 12; n++) files[`lib/${String(n)}.js`] = `module.exports = ${String(n)};\n`.repeat(20);
    const source = join(folder, 'sources', name);
    writeTree(join(source, 'package'), files);
    await ok('tar', ['-czf', join(folder, 'tarballs', `${name}.tgz`), '-C', source, 'package'], folder);
    dependencies[name] = `file:../tarballs/${name}.tgz`;
  }
  return dependencies;
}

function programs(bench: Bench): Program[] {
  const packages = bench.quick ? 20 : 300;
  const cache = bench.scratch.folder('npm-cache');
  const npm = { npm_config_cache: cache };
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  return [
    {
      id: 'git-status-10000',
      rounds: bench.quick ? 2 : 7,
      async build(base) {
        manyFiles(base, 10_000);
        await ok('git', ['init', '-q'], base);
        await ok('git', ['add', '.'], base);
        await ok('git', ['commit', '-qm', 'all'], base);
      },
      measure: (folder) => milliseconds('git', ['status', '--porcelain'], folder),
    },
    {
      id: `npm-ci-${String(packages)}`,
      rounds: bench.quick ? 1 : 3,
      async build(base) {
        const dependencies = await tarballs(base, packages);
        writeTree(join(base, 'project'), {
          'package.json': JSON.stringify({ name: 'project', version: '1.0.0', dependencies }),
        });
        const args = ['install', '--package-lock-only', '--offline', '--no-audit', '--no-fund'];
        await ok('npm', args, join(base, 'project'), npm);
      },
      measure: (folder) =>
        milliseconds('npm', ['ci', '--offline', '--no-audit', '--no-fund'], join(folder, 'project'), npm),
    },
    {
      id: 'tsc-b',
      rounds: bench.quick ? 1 : 5,
      build(base) {
        const imports: string[] = [];
        for (let i = 0; i < (bench.quick ? 40 : 300); i++) {
          writeTree(base, { [`src/part${String(i)}.ts`]: `export const n${String(i)}: number = ${String(i)};\n` });
          imports.push(`export { n${String(i)} } from './part${String(i)}.js';`);
        }
        writeTree(base, {
          'src/index.ts': imports.join('\n'),
          'package.json': '{"type":"module"}',
          'tsconfig.json': JSON.stringify({
            compilerOptions: { outDir: 'out', rootDir: 'src', module: 'nodenext', composite: true, types: [] },
            include: ['src'],
          }),
        });
        return Promise.resolve();
      },
      measure: (folder) => milliseconds('node', [compiler, '-b'], folder),
    },
    {
      id: 'rm-rf-node_modules',
      rounds: bench.quick ? 1 : 5,
      build(base) {
        for (let i = 0; i < (bench.quick ? 2000 : 10_000); i++) {
          const folder = join(base, 'node_modules', `package-${String(Math.floor(i / 20))}`, 'lib');
          if (!existsSync(folder)) mkdirSync(folder, { recursive: true });
          writeFileSync(join(folder, `${String(i)}.js`), 'module.exports = 1;\n');
        }
        return Promise.resolve();
      },
      measure: (folder) => milliseconds('rm', ['-rf', 'node_modules'], folder),
    },
  ];
}

async function rows(bench: Bench, program: Program): Promise<Row[]> {
  const base = bench.scratch.folder(`program-${program.id}`);
  await program.build(base);
  const server = await serve(bench.scratch, base);
  const fuseOverlayfs = await installed('fuse-overlayfs');
  const found: Record<'bough' | 'overlayfs' | 'fuse-overlayfs', number[]> = {
    bough: [],
    overlayfs: [],
    'fuse-overlayfs': [],
  };
  try {
    const kinds: (() => Promise<View | null>)[] = [
      () => branch(server, bench.scratch),
      () => overlay(bench.scratch, base),
      () => (fuseOverlayfs === null ? Promise.resolve(null) : overlay(bench.scratch, base, fuseOverlayfs)),
    ];
    // Round by round on fresh views, so that a busy moment of the machine meets all alike.
    for (let i = 0; i < program.rounds; i++) {
      for (const make of kinds) {
        const view = await make();
        if (view === null) continue;
        try {
          found[view.name as keyof typeof found].push(await program.measure(view.path));
        } finally {
          await view.close();
        }
      }
    }
  } finally {
    await server.stop();
  }
  const peer = (name: keyof typeof found) => (found[name].length === 0 ? null : found[name]);
  return [
    within(1.5, {
      id: program.id,
      unit: 'ms',
      samples: found.bough,
      peer: 'overlayfs',
      peerSamples: peer('overlayfs'),
    }),
    within(1, {
      id: `${program.id}/fuse-overlayfs`,
      unit: 'ms',
      samples: found.bough,
      peer: 'fuse-overlayfs',
      peerSamples: peer('fuse-overlayfs'),
    }),
  ];
}

export async function programRows(bench: Bench): Promise<void> {
  for (const program of programs(bench)) if (bench.wants(program.id)) bench.rows.push(...(await rows(bench, program)));
}
