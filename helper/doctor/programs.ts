// Programs that Bough runs or is made of: git, Node, boughfs, the native module, the guest kernel. Part of the doctor.
import { findProgram, type Environment } from '../agents/find-program.js';
import { findBoughfs } from '../files/boughfs-process.js';
import { AddonError, probeFuse } from '../native/addon.js';
import { fail, pass, skip, warn, type Verdict } from './check.js';
import { run } from './files.js';
import { atLeast, parseVersion } from './parse.js';

export async function git(environment: Environment): Promise<Verdict> {
  const program = findProgram('git', environment);
  const fix = 'sudo apt-get install git';
  if (program === undefined) return warn('git is not on PATH: a commit cannot become a git commit', fix);
  const { stdout } = await run(program, ['--version'], { ...environment });
  const version = parseVersion(stdout);
  const said = stdout.trim().replace(/^git version /, '');
  if (!version || !atLeast(version, 2, 30)) return warn(`git ${said} is older than 2.30`, fix);
  return pass(said);
}

export function node(version = process.version): Verdict {
  const parsed = parseVersion(version);
  if (!parsed || !atLeast(parsed, 20, 0)) {
    return fail(`Node ${version}`, 'install Node.js 20 or newer: https://nodejs.org');
  }
  return pass(version);
}

export async function boughfs(environment: Environment): Promise<Verdict> {
  const fix = 'npm run build';
  let program: string;
  try {
    program = findBoughfs({ ...environment });
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error), fix);
  }
  const { status, stdout, stderr } = await run(program, ['--version'], { ...environment });
  if (status !== 0) return fail(`${program} --version failed: ${stderr.trim().split('\n').at(-1) ?? ''}`, fix);
  return pass(`${stdout.trim()} (${program})`);
}

export function addon(): Verdict {
  try {
    probeFuse();
    return pass('bough.node loads');
  } catch (error) {
    if (error instanceof AddonError) return fail(error.message, 'npm run build');
    throw error;
  }
}

export function guestKernel(): Verdict {
  return skip('microVMs are not in this version');
}
