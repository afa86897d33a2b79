// Whole programs on a branch: git, npm, tsc and a watcher, each with its work checked afterwards.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, unlinkSync, watch, writeFileSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { root, run, Server, until, writeTree, type Checks, type Scratch } from '../harness.js';

async function ok(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const done = await run(program, args, { cwd, env: { ...process.env, ...env }, timeoutMs: 300_000 });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}\n${done.out}${done.err}`);
  return done.out;
}

const gitEnv = {
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@b',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@b',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};
const git = (cwd: string, ...args: string[]) => ok('git', ['-c', 'init.defaultBranch=main', ...args], cwd, gitEnv);

async function makeRepository(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await git(folder, 'init', '-q');
  for (let i = 0; i < 120; i++) {
    writeTree(folder, {
      [`src/part${String(i % 8)}/file${String(i)}.ts`]: `export const n${String(i)} = ${String(i)};\n`,
    });
  }
  writeTree(folder, { '.gitignore': 'out/\n', 'README.md': '# Sample\n' });
  await git(folder, 'add', '.');
  await git(folder, 'commit', '-qm', 'first');
}

async function gitRepository(dir: string): Promise<void> {
  const repo = join(dir, 'repo');
  assert.equal(await git(repo, 'status', '--porcelain'), '');
  writeFileSync(join(repo, 'README.md'), '# Changed\n');
  unlinkSync(join(repo, 'src/part0/file0.ts'));
  writeTree(repo, { 'src/new.ts': 'export {};\n', 'out/ignored.js': '' });
  assert.deepEqual((await git(repo, 'status', '--porcelain')).trimEnd().split('\n').sort(), [
    ' D src/part0/file0.ts',
    ' M README.md',
    '?? src/new.ts',
  ]);
  await git(repo, 'stash', '-q', '--include-untracked');
  assert.equal(await git(repo, 'status', '--porcelain'), '');
  await git(repo, 'stash', 'pop', '-q');
  await git(repo, 'checkout', '-q', '-b', 'work');
  await git(repo, 'add', '-A');
  await git(repo, 'commit', '-qm', 'second');
  await git(repo, 'checkout', '-q', 'main');
  assert.equal(readFileSync(join(repo, 'README.md'), 'utf8'), '# Sample\n');
  assert.equal(existsSync(join(repo, 'src/new.ts')), false);
  await git(repo, 'mv', 'src/part1', 'src/moved');
  await git(repo, 'commit', '-qm', 'third');
  await git(repo, 'merge', '-q', '-m', 'merge', 'work');
  await git(repo, 'rebase', '-q', '--force-rebase', 'HEAD~1');
  await git(repo, 'gc', '-q', '--prune=now');
  await git(repo, 'fsck', '--strict');
  await git(repo, 'clone', '-q', repo, join(dir, 'clone'));
  await git(dir, 'worktree', 'list', '--porcelain').catch(() => undefined);
  await git(repo, 'worktree', 'add', '-q', join(dir, 'tree'), 'work');
  await git(repo, 'reset', '-q', '--hard', 'HEAD');
  assert.equal(await git(repo, 'status', '--porcelain'), '');
  assert.equal(await git(join(dir, 'clone'), 'status', '--porcelain'), '');
  assert.equal(await git(join(dir, 'clone'), 'rev-parse', 'HEAD^{tree}'), await git(repo, 'rev-parse', 'HEAD^{tree}'));
}

/** A project whose dependencies are tarballs beside it, so that npm needs no registry. */
async function makeProject(folder: string, cache: string): Promise<void> {
  const dependencies: Record<string, string> = {};
  for (let i = 0; i < 12; i++) {
    const name = i % 3 === 0 ? `@scope/p${String(i)}` : `p${String(i)}`;
    const files: Record<string, string> = {
      'package.json': JSON.stringify({ name, version: '1.0.0', bin: { [`p${String(i)}`]: 'cli.js' } }),
    };
    files['cli.js'] = `#!/usr/bin/env node\nconsole.log(${String(i)});\n`;
    for (let n = 0; n < 20; n++) files[`lib/${String(n)}.js`] = `module.exports = ${String(n)};\n`;
    const source = join(folder, 'sources', `p${String(i)}`);
    writeTree(join(source, 'package'), files);
    await mkdir(join(folder, 'tarballs'), { recursive: true });
    await ok('tar', ['-czf', join(folder, 'tarballs', `p${String(i)}.tgz`), '-C', source, 'package'], folder);
    dependencies[name] = `file:../tarballs/p${String(i)}.tgz`;
  }
  writeTree(join(folder, 'project'), {
    'package.json': JSON.stringify({ name: 'project', version: '1.0.0', dependencies }),
    'index.js': "console.log(require('@scope/p0/lib/3.js') + require('p1/lib/4.js'));\n",
  });
  await ok('npm', ['install', '--package-lock-only', '--offline', '--no-audit', '--no-fund'], join(folder, 'project'), {
    npm_config_cache: cache,
  });
}

async function npmCi(dir: string, cache: string): Promise<void> {
  const project = join(dir, 'npm', 'project');
  for (let round = 0; round < 2; round++) {
    await ok('npm', ['ci', '--offline', '--no-audit', '--no-fund'], project, { npm_config_cache: cache });
    assert.equal(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.')).length, 9);
    assert.equal((await ok('node', ['index.js'], project)).trim(), '7');
    assert.equal((await ok(join(project, 'node_modules/.bin/p5'), [], project)).trim(), '5');
  }
}

async function tsc(dir: string): Promise<void> {
  const project = join(dir, 'ts');
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  await ok('node', [compiler, '-b'], project);
  assert.equal((await ok('node', ['out/main.js'], project)).trim(), '42');
  writeFileSync(join(project, 'src/answer.ts'), 'export const answer: number = 43;\n');
  await ok('node', [compiler, '-b'], project);
  assert.equal((await ok('node', ['out/main.js'], project)).trim(), '43');
  writeFileSync(join(project, 'src/answer.ts'), 'export const answer: string = 43;\n');
  const failed = await run('node', [compiler, '-b'], { cwd: project });
  assert.notEqual(failed.status, 0);
  assert.match(failed.out, /TS2322/);
}

async function watcher(dir: string): Promise<void> {
  const folder = join(dir, 'watched');
  await mkdir(join(folder, 'sub'), { recursive: true });
  const seen = new Set<string>();
  const watchers = [folder, join(folder, 'sub')].map((each) =>
    watch(each, (event, name) => seen.add(`${event} ${String(name)}`)),
  );
  try {
    writeFileSync(join(folder, 'a.txt'), '1');
    await until('a new file is seen', () => seen.has('rename a.txt') && seen.has('change a.txt'));
    seen.clear();
    writeFileSync(join(folder, 'a.txt'), '2');
    await until('a change is seen', () => seen.has('change a.txt'));
    writeFileSync(join(folder, 'sub/.b.tmp'), 'b');
    await rename(join(folder, 'sub/.b.tmp'), join(folder, 'sub/b.txt'));
    await until('a file that came by rename is seen', () => seen.has('rename b.txt'));
    unlinkSync(join(folder, 'a.txt'));
    await until('a removal is seen', () => seen.has('rename a.txt'));
  } finally {
    for (const each of watchers) each.close();
  }
}

/** Each workload on a branch over the base, and on a child of a branch in which the same was done before. */
export async function workloads(_server: Server, scratch: Scratch, checks: Checks): Promise<void> {
  const base = scratch.folder('work-base');
  const cache = scratch.folder('npm-cache');
  await makeRepository(join(base, 'repo'));
  await makeProject(join(base, 'npm'), cache);
  writeTree(join(base, 'ts'), {
    'tsconfig.json': JSON.stringify({
      compilerOptions: { outDir: 'out', rootDir: 'src', module: 'nodenext', composite: true, types: [], strict: true },
      include: ['src'],
    }),
    'package.json': '{"type":"module"}',
    'src/main.ts': "import { answer } from './answer.js';\nconsole.log(answer);\n".replace(
      'console',
      'globalThis.console',
    ),
    'src/answer.ts': 'export const answer: number = 42;\n',
  });
  const server = await Server.start({
    base,
    store: scratch.folder('work-store'),
    socket: join(scratch.path, 'work-control'),
  });
  try {
    const top = scratch.folder('work-mounts', 'top');
    const topId = await server.mountedBranch('base', top);
    const run1 = async (where: string, dir: string) => {
      await checks.check(`[workloads] git, ${where}`, () => gitRepository(dir));
      await checks.check(`[workloads] npm ci, ${where}`, () => npmCi(dir, cache));
      await checks.check(`[workloads] tsc -b, ${where}`, () => tsc(dir));
      await checks.check(`[workloads] fs.watch, ${where}`, () => watcher(dir));
    };
    // The nested branch starts from the same state: it is made first.
    const nested = scratch.folder('work-mounts', 'nested');
    const middle = await server.mountedBranch(topId, scratch.folder('work-mounts', 'middle'));
    await server.mountedBranch(middle, nested);
    await run1('on a branch', top);
    await run1('on a nested branch', nested);
    await checks.check('[workloads] the base saw nothing', async () => {
      assert.equal(await git(join(base, 'repo'), 'status', '--porcelain'), '');
      assert.equal(existsSync(join(base, 'npm/project/node_modules')), false);
      assert.equal(existsSync(join(base, 'ts/out')), false);
    });
    await checks.check('[workloads] the store is whole', async () => {
      const { ok: whole, problems } = await server.client.request('store.check', {});
      assert.ok(whole, problems.join('; '));
    });
  } finally {
    await server.stop();
  }
}
