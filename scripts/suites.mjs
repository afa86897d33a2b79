// The suites of `npm test`, in the order in which they run: cheap and basic ones first. Used by scripts/test.mjs.
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './packages.mjs';
import { root } from './processes.mjs';

/**
 * How a suite's result is counted:
 * - `last-line`: its last line of output says `N passed, N failed, N skipped`;
 * - `vitest`: the JSON report that vitest writes to $BOUGH_VITEST_REPORT;
 * - `status`: the suite is one test, passed when it exits with 0.
 *
 * @typedef {object} Suite
 * @property {string} name
 * @property {string} shows what a green run of it says about Bough
 * @property {string} needs the file that it starts from, relative to the root
 * @property {readonly string[]} command
 * @property {'last-line' | 'vitest' | 'status'} counts
 * @property {number} minutes after which it is killed and counts as failed
 * @property {boolean} [vscodeWeb] needs VS Code for the browser
 * @property {boolean} [machines] needs KVM, here or emulated, and the guest kernel, which BOUGH_KERNEL then names
 * @property {() => string | undefined} [skip] why this machine cannot run it
 */

const tsx = join('node_modules', '.bin', 'tsx');

/** @param {string} folder @returns {readonly string[]} */
const main = (folder) => [tsx, `test/${folder}/main.ts`];

function withoutFuse() {
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
    return undefined;
  } catch {
    return 'FUSE_MISSING: /dev/fuse cannot be opened; load the fuse module or give the container the device';
  }
}

function withoutRoot() {
  return process.getuid?.() === 0
    ? undefined
    : 'ROOT_MISSING: a first process with mounts and cgroups of its own is made by root only; run the tests as root';
}

function withoutClang() {
  return findProgram('clang++-19') === undefined
    ? 'CLANG_MISSING: clang-19 is not installed and this release of the distribution does not have it'
    : undefined;
}

function withoutChromium() {
  return findProgram('chromium') === undefined && findProgram('google-chrome') === undefined
    ? 'CHROMIUM_MISSING: no Chromium is installed and this release of the distribution does not have it'
    : undefined;
}

/** @type {readonly Suite[]} */
export const suites = [
  {
    name: 'static',
    shows: 'types, lint, format, dependency arrows, contributions and the lock file hold',
    needs: 'scripts/lint.mjs',
    command: ['node', 'scripts/lint.mjs'],
    counts: 'last-line',
    minutes: 30,
  },
  {
    name: 'tidy',
    shows: 'clang-tidy finds nothing in the C++ code',
    needs: 'scripts/check-cpp.mjs',
    command: ['node', 'scripts/check-cpp.mjs', '--tidy'],
    counts: 'last-line',
    minutes: 60,
    skip: () =>
      findProgram('clang-tidy-19') === undefined
        ? (withoutClang() ?? 'CLANG_TIDY_MISSING: clang-tidy-19 is not installed')
        : undefined,
  },
  {
    name: 'unit',
    shows: 'TypeScript units behave',
    needs: 'vitest.config.ts',
    command: ['node', join('node_modules', 'vitest', 'vitest.mjs'), 'run', '--reporter=default', '--reporter=json'],
    counts: 'vitest',
    minutes: 30,
  },
  {
    name: 'native',
    shows: 'C++ units behave',
    needs: 'native/branchfs/CMakeLists.txt',
    command: ['node', 'scripts/ctest.mjs', 'release'],
    counts: 'last-line',
    minutes: 90,
  },
  {
    name: 'native-asan',
    shows: 'C++ units have no memory error or undefined behaviour',
    needs: 'native/branchfs/CMakeLists.txt',
    command: ['node', 'scripts/ctest.mjs', 'asan'],
    counts: 'last-line',
    minutes: 90,
    skip: withoutClang,
  },
  {
    name: 'fuzz',
    shows: 'parsers of untrusted bytes survive a short fuzzing run',
    needs: 'native/branchfs/CMakeLists.txt',
    command: ['node', 'scripts/fuzz.mjs'],
    counts: 'last-line',
    minutes: 60,
    skip: withoutClang,
  },
  {
    name: 'helper',
    shows: 'the helper serves its API over real boughfs, bubblewrap and git',
    needs: 'test/helper/main.ts',
    command: main('helper'),
    counts: 'last-line',
    minutes: 40,
    skip: withoutFuse,
  },
  {
    name: 'conformance',
    shows: 'a program cannot tell a branch from ext4',
    needs: 'test/conformance/main.ts',
    command: main('conformance'),
    counts: 'last-line',
    minutes: 40,
    skip: withoutFuse,
  },
  {
    name: 'model',
    shows: 'random operations on a branch and on ext4 end in the same tree',
    needs: 'test/model/main.ts',
    command: main('model'),
    counts: 'last-line',
    minutes: 40,
    skip: withoutFuse,
  },
  {
    name: 'crash',
    shows: 'a SIGKILL at any step of a commit loses nothing and tears nothing',
    needs: 'test/crash/main.ts',
    command: main('crash'),
    counts: 'last-line',
    minutes: 40,
    skip: withoutFuse,
  },
  {
    name: 'kvm-host',
    shows: 'commands find a KVM that works: of this computer, or emulated',
    needs: 'test/vm/kvm-host/main.ts',
    command: [tsx, 'test/vm/kvm-host/main.ts'],
    counts: 'last-line',
    machines: true,
    minutes: 20,
  },
  {
    name: 'guest-kernel',
    shows: 'the guest kernel boots and has what programs need',
    needs: 'test/vm/guest-kernel/main.ts',
    command: [tsx, 'test/vm/guest-kernel/main.ts'],
    counts: 'last-line',
    machines: true,
    minutes: 15,
  },
  {
    name: 'guest',
    shows: 'bough-init runs, keeps and freezes programs as process 1, whatever it is told',
    needs: 'test/guest/main.ts',
    command: main('guest'),
    counts: 'last-line',
    minutes: 20,
    skip: withoutRoot,
  },
  {
    name: 'agents',
    shows: 'agent presets start what they say, and the example agent repairs the sample',
    needs: 'test/agents/main.ts',
    command: main('agents'),
    counts: 'last-line',
    minutes: 20,
  },
  {
    name: 'demo',
    shows: 'the main job works without a screen',
    needs: 'test/demo/suite.ts',
    command: [tsx, 'test/demo/suite.ts'],
    counts: 'last-line',
    minutes: 20,
    skip: withoutFuse,
  },
  {
    name: 'cli',
    shows: 'the bough command does what its help says',
    needs: 'test/cli/main.ts',
    command: main('cli'),
    counts: 'last-line',
    minutes: 30,
    skip: withoutFuse,
  },
  {
    name: 'start',
    shows: 'npm start serves VS Code with Bough and starts the helper',
    needs: 'scripts/start.mjs',
    command: ['node', 'scripts/start.mjs', '--check', '--yes'],
    counts: 'status',
    vscodeWeb: true,
    minutes: 30,
    skip: withoutFuse,
  },
  {
    name: 'e2e',
    shows: 'a person does the main job in a real VS Code in a real browser',
    needs: 'test/e2e/main.ts',
    command: main('e2e'),
    counts: 'last-line',
    vscodeWeb: true,
    minutes: 60,
    skip: () => withoutFuse() ?? withoutChromium(),
  },
  {
    name: 'electron',
    shows: 'the extension activates in a desktop VS Code',
    needs: 'test/electron/main.ts',
    command: main('electron'),
    counts: 'last-line',
    minutes: 15,
    skip: withoutFuse,
  },
];

/** A suite whose file is missing has not passed: it would vanish from the sum unseen. @param {Suite} suite */
export function isPresent(suite) {
  return existsSync(join(root, suite.needs));
}
