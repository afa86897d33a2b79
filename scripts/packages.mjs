// What Bough needs from Debian or Ubuntu, and for which of the two commands. Used by set-up.
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './processes.mjs';

/**
 * @typedef {'build' | 'editor' | 'test' | 'machine'} Purpose build: compile and run Bough; editor: VS Code in the browser;
 *   test: the suites; machine: the guest kernel of microVMs
 *
 * @typedef {object} SystemPackage
 * @property {string} name
 * @property {Purpose} purpose
 * @property {string} why
 * @property {string} [program] a program that proves that it is there by other means than apt
 * @property {boolean} [optional] its absence skips suites instead of stopping set-up
 */

/** @type {readonly SystemPackage[]} */
export const systemPackages = [
  { name: 'cmake', purpose: 'build', why: 'builds the native half', program: 'cmake' },
  { name: 'ninja-build', purpose: 'build', why: 'builds the native half', program: 'ninja' },
  { name: 'g++', purpose: 'build', why: 'C++20 compiler', program: 'g++' },
  { name: 'pkg-config', purpose: 'build', why: 'finds libraries', program: 'pkg-config' },
  { name: 'nlohmann-json3-dev', purpose: 'build', why: 'JSON in boughfs' },
  { name: 'doctest-dev', purpose: 'build', why: 'C++ unit tests' },
  { name: 'libseccomp-dev', purpose: 'build', why: 'system call filters' },
  { name: 'fuse3', purpose: 'build', why: 'mounts for other users than root', program: 'fusermount3' },
  { name: 'bubblewrap', purpose: 'build', why: 'isolates the processes of a branch', program: 'bwrap' },
  { name: 'git', purpose: 'build', why: 'commits after a merge, and the sample project', program: 'git' },
  { name: 'ripgrep', purpose: 'editor', why: 'search in VS Code', program: 'rg' },
  { name: 'libkrb5-dev', purpose: 'editor', why: "compiles one of VS Code's modules" },
  { name: 'python3', purpose: 'editor', why: "compiles VS Code's modules", program: 'python3' },
  { name: 'make', purpose: 'editor', why: "compiles VS Code's modules", program: 'make' },
  { name: 'linux-source', purpose: 'machine', why: 'the source of the guest kernel', optional: true },
  { name: 'make', purpose: 'machine', why: 'builds the guest kernel', program: 'make', optional: true },
  { name: 'flex', purpose: 'machine', why: 'builds the guest kernel', program: 'flex', optional: true },
  { name: 'bison', purpose: 'machine', why: 'builds the guest kernel', program: 'bison', optional: true },
  { name: 'bc', purpose: 'machine', why: 'builds the guest kernel', program: 'bc', optional: true },
  { name: 'libelf-dev', purpose: 'machine', why: 'builds the guest kernel', optional: true },
  { name: 'patch', purpose: 'machine', why: 'adapts the guest kernel', program: 'patch', optional: true },
  {
    name: 'xz-utils',
    purpose: 'machine',
    why: 'unpacks the source of the guest kernel',
    program: 'xz',
    optional: true,
  },
  {
    name: 'qemu-system-x86',
    purpose: 'test',
    why: 'emulates a computer with KVM where this one has none',
    program: 'qemu-system-x86_64',
    optional: true,
  },
  { name: 'busybox-static', purpose: 'test', why: 'first root of that computer', program: 'busybox', optional: true },
  { name: 'zstd', purpose: 'test', why: "unpacks that computer's kernel (Ubuntu)", program: 'zstd', optional: true },
  { name: 'attr', purpose: 'test', why: 'conformance tests of extended attributes', program: 'setfattr' },
  { name: 'acl', purpose: 'test', why: 'conformance tests of access lists', program: 'setfacl' },
  { name: 'util-linux', purpose: 'test', why: 'unshare, flock and setpriv in tests', program: 'unshare' },
  { name: 'clang-19', purpose: 'test', why: 'sanitizers and fuzzing', program: 'clang++-19', optional: true },
  { name: 'libclang-rt-19-dev', purpose: 'test', why: 'sanitizers and fuzzing', optional: true },
  {
    name: 'clang-format-19',
    purpose: 'test',
    why: 'checks the C++ format',
    program: 'clang-format-19',
    optional: true,
  },
  { name: 'clang-tidy-19', purpose: 'test', why: 'npm run tidy', program: 'clang-tidy-19', optional: true },
  { name: 'chromium', purpose: 'test', why: 'end-to-end tests in a browser', program: 'chromium', optional: true },
  { name: 'fonts-noto-core', purpose: 'test', why: 'text in end-to-end screenshots', optional: true },
];

/** The program's path in PATH, or undefined. @param {string} program */
export function findProgram(program) {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder || '.', program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not here
    }
  }
  return undefined;
}

/** Files that libraries without a program of their own leave behind, for machines without dpkg. @type {Readonly<Record<string, readonly string[]>>} */
const libraryFiles = {
  'nlohmann-json3-dev': ['/usr/include/nlohmann/json.hpp', '/usr/local/include/nlohmann/json.hpp'],
  'doctest-dev': ['/usr/include/doctest/doctest.h', '/usr/local/include/doctest/doctest.h'],
  'libseccomp-dev': ['/usr/include/seccomp.h', '/usr/local/include/seccomp.h'],
  'libelf-dev': ['/usr/include/libelf.h', '/usr/local/include/libelf.h'],
  'libkrb5-dev': ['/usr/include/gssapi/gssapi.h', '/usr/include/gssapi.h'],
};

/**
 * Which of the packages are not there.
 * @param {readonly SystemPackage[]} wanted
 * @returns {Promise<SystemPackage[]>}
 */
export async function missingPackages(wanted) {
  const names = wanted.map((p) => p.name);
  const query = await run('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\n', ...names], {
    env: { ...process.env, LC_ALL: 'C' },
  });
  const installed = new Set(
    query.output
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  );
  return wanted.filter((p) => {
    if (installed.has(p.name)) return false;
    if (p.program !== undefined) return findProgram(p.program) === undefined;
    return !(libraryFiles[p.name] ?? []).some((file) => existsSync(file));
  });
}
