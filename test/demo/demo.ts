// The main job without a screen: an agent's session is branched, each branch tries its own repair, the best one is committed
// to its parent and then to the folder, the rest is dropped. Used by main.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { HelperClient } from '../../helper/api/client.js';
import type { Branch } from '../../helper/protocol/rpc.js';
import { run, until } from '../harness.js';
import { snapshotOf, differences } from './tree.js';
import { World, type Leftovers } from './world.js';

export interface Try {
  readonly id: string;
  readonly name: string;
  readonly hint: string;
  readonly exitCode: number | null;
  readonly changes: number;
  /** Lines of its patch. */
  readonly lines: number;
  readonly checks: 'passed' | 'failed';
  /** What it did to the one place where repairs differ. */
  readonly repair: string;
}

export interface DemoResult {
  readonly ok: boolean;
  readonly mode: 'process' | 'microvm';
  readonly branches: number;
  readonly winner: string | null;
  readonly baseTestsPass: boolean;
  /** State of each branch when all was committed, by name. */
  readonly states: Readonly<Record<string, string>>;
  /** The commit of the winner's files into the folder on disk, as the one who asked for it waited. */
  readonly commitMs: number | null;
  readonly commitIntoParentMs: number | null;
  /** How long the parent's files stood still while it was branched. */
  readonly pauseMs: number | null;
  readonly leftovers: Leftovers;
  readonly tries: readonly Try[];
  readonly tookMs: number;
  /** What did not hold; empty when ok. */
  readonly problems: readonly string[];
}

export type Say = (line: string) => void;

const hints = [
  'comparisons first',
  'off by one first',
  'constants first',
  'random seed 7',
  'smallest change',
  'bottom up',
];

/** A search takes some seconds; this is for a machine that is busy with much else. */
const SEARCH_DEADLINE_MS = 240_000;

/** Written in the parent's terminal before it is branched: the children must have it, and the folder only in the end. */
const note = 'NOTES.md';

export async function runDemo(count: number, say: Say): Promise<DemoResult> {
  const startedMs = Date.now();
  const world = new World();
  try {
    say(`sample repository: ${world.folder}`);
    const client = await world.connect('demo');
    const job = new MainJob(world, client, say);
    try {
      await job.run(count);
    } finally {
      client.close();
    }
    await world.shutdown();
    const leftovers = world.leftovers();
    job.expect(leftovers.names.length === 0, `left behind: ${leftovers.names.join(', ')}`);
    return { ...job.result(), leftovers, tookMs: Date.now() - startedMs };
  } finally {
    await world.shutdown().catch(() => undefined);
    await world.remove();
  }
}

class MainJob {
  private readonly problems: string[] = [];
  private readonly tries: Try[] = [];
  private branches = 0;
  private winner: string | null = null;
  private baseTestsPass = false;
  private states: Record<string, string> = {};
  private commitMs: number | null = null;
  private commitIntoParentMs: number | null = null;
  private pauseMs: number | null = null;

  constructor(
    private readonly world: World,
    private readonly client: HelperClient,
    private readonly say: Say,
  ) {}

  expect(holds: boolean, problem: string): void {
    if (!holds) this.problems.push(problem);
  }

  result(): Omit<DemoResult, 'leftovers' | 'tookMs'> {
    const { branches, winner, baseTestsPass, states, commitMs, commitIntoParentMs, pauseMs, tries, problems } = this;
    const ok = problems.length === 0;
    const mode = 'process';
    return {
      ok,
      mode,
      branches,
      winner,
      baseTestsPass,
      states,
      commitMs,
      commitIntoParentMs,
      pauseMs,
      tries,
      problems,
    };
  }

  async run(count: number): Promise<void> {
    const { folder } = this.world;
    this.expect(!(await this.testsPassInFolder()), 'the tests of the fresh sample pass: there is nothing to repair');
    const before = snapshotOf(folder);
    const parent = await this.startParent();
    const children = await this.branch(parent, count);
    await this.untilAllEnded(children);
    for (const child of children) this.tries.push(await this.judge(child));
    const best = this.choose();
    if (!best) {
      this.problems.push('no branch has a repair that passes the checks');
    } else {
      this.winner = best.name;
      await this.commit(parent, best);
      this.expectOnlyRepairs(before);
      this.baseTestsPass = await this.testsPassInFolder();
      this.expect(this.baseTestsPass, 'the tests in the folder do not pass after the commit');
      this.say(`npm test in the folder: ${this.baseTestsPass ? 'passes' : 'fails'}`);
    }
    await this.discard();
  }

  /** A shell with something done in it: what it wrote is part of what each child starts with. */
  private async startParent(): Promise<Branch> {
    const { client, world } = this;
    await client.request('bough/open', { folder: world.folder });
    const parent = await client.request('bough/start', { folder: world.folder, agent: 'shell', name: 'session' });
    const { terminal } = await client.request('bough/terminal/open', { branch: parent.id, rows: 24, columns: 80 });
    await client.request('bough/terminal/input', { terminal, data: `echo "three tests fail" > ${note}; sync\n` });
    await until('the shell has written its note', () => this.has(parent.id, note));
    this.say(`started a shell in the branch "${parent.name}"; it wrote ${note}`);
    return parent;
  }

  private async branch(parent: Branch, count: number): Promise<readonly Branch[]> {
    const chosen = Array.from({ length: count }, (_, index) => hints[index] ?? `random seed ${index + 1}`);
    const { branches, pauseUs } = await this.client.request('bough/branch', {
      branch: parent.id,
      count,
      hints: chosen,
      group: 'exclusive',
      agent: 'repair',
    });
    this.branches = branches.length;
    this.pauseMs = pauseUs / 1000;
    this.expect(branches.length === count, `${branches.length} branches were made instead of ${count}`);
    this.say(`branched it ${branches.length} times; it paused for ${this.pauseMs} ms`);
    for (const child of branches) {
      for (const path of [note, '.env', 'node_modules/@types/plural-word/index.d.ts', 'docs/latest.md', 'inbox']) {
        this.expect(await this.has(child.id, path), `${path} is missing in ${child.name}`);
      }
    }
    return branches;
  }

  private async untilAllEnded(children: readonly Branch[]): Promise<void> {
    const ids = new Set(children.map(({ id }) => id));
    await until(
      'every branch has ended its search',
      async () => {
        const { branches } = await this.list();
        return branches.filter(({ id, person }) => ids.has(id) && person !== 'running').length === ids.size;
      },
      SEARCH_DEADLINE_MS,
    );
  }

  private async judge({ id, name, hint }: Branch): Promise<Try> {
    const { client } = this;
    const checks = await client.request('bough/checks', { branch: id, command: 'npm test' });
    const { total } = await client.request('bough/diff', { branch: id });
    const { text } = await client.request('bough/patch', { branch: id });
    const { branches } = await this.list();
    const exitCode = branches.find((branch) => branch.id === id)?.exitCode ?? null;
    const lines = text.split('\n').filter((line) => /^[+-](?![+-])/.test(line));
    const repair =
      lines
        .find((line) => /^\+.*b\.end/.test(line))
        ?.slice(1)
        .trim() ?? '';
    const state = checks.state === 'passed' ? 'passed' : 'failed';
    this.expect(
      (exitCode === 0) === (state === 'passed'),
      `${name} says ${exitCode ?? 'nothing'}, its checks ${state}`,
    );
    this.say(`  ${name} (${hint}): ${total} changes, checks ${state}; ${repair}`);
    return { id, name, hint, exitCode, changes: total, lines: lines.length, checks: state, repair };
  }

  /** The shortest repair that passes; the first one of equals. */
  private choose(): Try | undefined {
    const passed = this.tries.filter(({ checks }) => checks === 'passed');
    this.expect(passed.length === this.tries.length, 'not every branch found a repair');
    const size = ({ lines, repair }: Try) => lines * 1000 + repair.length;
    return passed.sort((a, b) => size(a) - size(b))[0];
  }

  private async commit(parent: Branch, best: Try): Promise<void> {
    const { client } = this;
    const child = await timed(() => client.request('bough/commit', { branch: best.id }));
    this.commitIntoParentMs = child.ms;
    this.expect(child.value.into === parent.id, `${best.name} was committed into ${child.value.into}`);
    const base = await timed(() => client.request('bough/commit', { branch: parent.id }));
    this.commitMs = base.ms;
    this.expect(base.value.into === 'base', `the session was committed into ${base.value.into}`);
    this.expect(base.value.notApplied.length === 0, 'the commit left something out');
    for (const { name, fileState } of (await this.list()).branches) this.states[name] = fileState;
    this.expect(this.states[best.name] === 'committed', `the winner is ${this.states[best.name] ?? 'gone'}`);
    this.expect(this.states[parent.name] === 'committed', `the session is ${this.states[parent.name] ?? 'gone'}`);
    const losers = this.tries.filter(({ name }) => name !== best.name).map(({ name }) => this.states[name]);
    this.expect(
      losers.every((state) => state === 'superseded'),
      `the other branches are ${losers.join(', ')}`,
    );
    this.say(`committed ${best.name} to the session (${child.ms} ms) and the session to the folder (${base.ms} ms)`);
  }

  /** The commit changed what was repaired, added the note, and touched nothing else. */
  private expectOnlyRepairs(before: ReadonlyMap<string, string>): void {
    const changed = differences(before, snapshotOf(this.world.folder));
    const wanted = [note, 'src/money.js', 'src/pages.js', 'src/schedule.js'];
    this.expect(changed.join() === wanted.join(), `the commit changed ${changed.join(', ')}`);
    this.expect(readFileSync(join(this.world.folder, note), 'utf8') === 'three tests fail\n', `${note} is another`);
  }

  private async discard(): Promise<void> {
    const roots = (await this.list()).branches.filter(({ parent }) => parent === 'base');
    for (const { id } of roots) await this.client.request('bough/abort', { branch: id, recursive: true });
    const left = (await this.list()).branches;
    this.expect(left.length === 0, `branches are left: ${left.map(({ name }) => name).join(', ')}`);
    this.say('dropped all branches');
  }

  private list(): Promise<{ readonly branches: readonly Branch[] }> {
    return this.client.request('bough/list', { folder: this.world.folder });
  }

  private async has(branch: string, path: string): Promise<boolean> {
    return this.client.request('bough/stat', { branch, side: 'branch', path }).then(
      () => true,
      () => false,
    );
  }

  private async testsPassInFolder(): Promise<boolean> {
    const { folder, environment } = this.world;
    return (await run('npm', ['test'], { cwd: folder, env: environment })).status === 0;
  }
}

/** The value and how long it took, in milliseconds with three digits. */
async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const startedNs = process.hrtime.bigint();
  const value = await work();
  return { value, ms: Number((process.hrtime.bigint() - startedNs) / 1000n) / 1000 };
}
