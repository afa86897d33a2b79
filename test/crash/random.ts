// Kills at random moments of commits into the base and into a branch, on one store that lives through all of it.
import type { Checks } from '../harness.js';
import { unlike, type Arena, type Sight } from './arena.js';
import { EDITS } from './operations.js';

interface Moments {
  readonly kills: number;
  readonly random: () => number;
}

/** Looks at nothing but what a commit changes. */
function part(sight: Sight, branch: string | null): Sight {
  if (branch === null) return { base: sight.base, branches: {} };
  const seen = sight.branches[branch];
  return { base: {}, branches: seen === undefined ? {} : { [branch]: seen } };
}

function busyUntil(time: number): void {
  while (performance.now() < time);
}

/** How long a commit takes when nobody disturbs it, in ms: the middle one of a few. */
async function undisturbed(arena: Arena, parent: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const branch = await arena.branch(`quiet-${parent}-${String(i)}`, parent, EDITS);
    const began = performance.now();
    const { commit } = await arena.client.request('branch.commit', { branch });
    times.push(performance.now() - began);
    await arena.client.request('commit.undo', { commit });
    await arena.client.request('branch.abort', { branch });
  }
  return times.sort((a, b) => a - b)[2] ?? 0;
}

async function killOnce(arena: Arena, name: string, parent: string, delayMs: number): Promise<boolean> {
  const parentName = parent === 'base' ? null : 'parent';
  const branch = await arena.branch(name, parent, EDITS);
  const exact = await arena.look();
  // A folder's time alone is no change that a commit carries.
  const all = await arena.look(false);
  const before = part(all, parentName);
  const mine = all.branches[name]?.tree ?? {};
  const wanted: Sight =
    parentName === null
      ? { base: mine, branches: {} }
      : { base: {}, branches: { [parentName]: { state: 'live', tree: mine } } };
  const request = arena.client.request('branch.commit', { branch }).then(
    () => undefined,
    () => undefined,
  );
  busyUntil(performance.now() + delayMs);
  await arena.kill();
  await request;
  await arena.start();
  const seen = await arena.look(false);
  const fromOld = unlike(part(seen, parentName), before);
  const fromNew = unlike(part(seen, parentName), wanted);
  if (fromOld.length > 0 && fromNew.length > 0) {
    throw new Error(`neither old:\n${fromOld.slice(0, 6).join('\n')}\nnor new:\n${fromNew.slice(0, 6).join('\n')}`);
  }
  const happened = fromNew.length === 0;
  const state = seen.branches[name]?.state;
  if (state !== (happened ? 'committed' : 'live')) throw new Error(`the branch is ${String(state)}`);
  if (!happened) {
    const own = unlike({ base: seen.branches[name]?.tree ?? {}, branches: {} }, { base: mine, branches: {} });
    if (own.length > 0) throw new Error(`the branch is not what it was:\n${own.slice(0, 6).join('\n')}`);
    await arena.client.request('branch.commit', { branch });
  }
  const witness = unlike(part(seen, 'witness'), part(all, 'witness'));
  if (witness.length > 0) throw new Error(`another branch changed:\n${witness.slice(0, 6).join('\n')}`);
  await arena.sound();
  const { commits } = await arena.client.request('commit.list', {});
  await arena.client.request('commit.undo', { commit: commits[0]?.commit ?? '' });
  const undone = unlike(part(await arena.look(), parentName), part(exact, parentName));
  if (undone.length > 0) throw new Error(`undone, but not as before:\n${undone.slice(0, 6).join('\n')}`);
  await arena.client.request('branch.abort', { branch });
  return happened;
}

export async function killAtRandomMoments(arena: Arena, checks: Checks, moments: Moments): Promise<void> {
  await arena.renew();
  await arena.start();
  await arena.branch('witness', 'base', [{ kind: 'append', path: 'docs/large', data: 'witness\n' }]);
  const parent = await arena.branch('parent', 'base', [{ kind: 'append', path: 'src/main', data: 'parent\n' }]);
  const usual = { base: await undisturbed(arena, 'base'), parent: await undisturbed(arena, parent) };
  let happened = 0;
  for (let i = 0; i < moments.kills; i++) {
    const into = i % 4 === 3 ? 'parent' : 'base';
    const delayMs = moments.random() * usual[into];
    const passed = await checks.check(
      `kill ${String(i)}, ${delayMs.toFixed(3)} ms into a commit into ${into}`,
      async () => {
        if (await killOnce(arena, `mine-${String(i)}`, into === 'base' ? 'base' : parent, delayMs)) happened++;
      },
    );
    if (!passed) break; // the next ones would only tell of this one again
  }
  console.log(
    `random moments: commits take ${usual.base.toFixed(1)} ms (base) and ${usual.parent.toFixed(1)} ms (branch), ` +
      `${String(happened)} of ${String(moments.kills)} had happened`,
  );
  await arena.clear();
}
