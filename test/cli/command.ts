// Runs the built `bough` in a world of its own. Used by the steps of this suite.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { World } from '../demo/world.js';
import { root } from '../harness.js';
import { runProgram, type ProgramResult } from './run-program.js';

export const program = join(root, 'dist', 'bough.js');

export interface JsonAnswer {
  readonly ok: boolean;
  readonly [field: string]: unknown;
}

export class Command {
  constructor(readonly world: World) {}

  /** Runs it in the sample's folder. */
  run(...args: string[]): Promise<ProgramResult> {
    return this.runIn(this.world.folder, ...args);
  }

  runIn(cwd: string, ...args: string[]): Promise<ProgramResult> {
    return runProgram([process.execPath, program, ...args], { cwd, env: this.world.environment });
  }

  /** Runs it, expects success, gives its text. */
  async text(...args: string[]): Promise<string> {
    const ran = await this.run(...args);
    assert.equal(ran.status, 0, `bough ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  /** Runs it with --json, expects success, gives the object of the last line. */
  async json(...args: string[]): Promise<JsonAnswer> {
    const ran = await this.run(...withJson(args));
    const answer = lastLine(ran);
    assert.equal(ran.status, 0, `bough ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
    assert.equal(answer.ok, true);
    return answer;
  }

  /** Runs it with --json and expects a failure with this code and a fix, on both streams. */
  async failure(code: string, ...args: string[]): Promise<Record<string, unknown>> {
    const ran = await this.run(...withJson(args));
    const answer = lastLine(ran);
    const error = answer['error'] as Record<string, unknown>;
    assert.equal(answer.ok, false, ran.stdout);
    assert.equal(error['code'], code, ran.stdout);
    assert.equal(ran.status, code === 'E_USAGE' ? 2 : 1);
    assert.match(ran.stderr, new RegExp(`^bough: ${code}: `));
    assert.match(ran.stderr, /^ {2}fix: ./m);
    return error;
  }

  /** A shell command in a branch; expects status 0. */
  async exec(branch: string, script: string): Promise<string> {
    return this.text('exec', branch, '--', 'sh', '-c', script);
  }
}

/** Before a `--`, after which everything belongs to somebody else. */
function withJson(args: readonly string[]): string[] {
  const at = args.indexOf('--');
  return at < 0 ? [...args, '--json'] : [...args.slice(0, at), '--json', ...args.slice(at)];
}

export function lastLine({ stdout, stderr }: ProgramResult): JsonAnswer {
  const line = stdout.trimEnd().split('\n').at(-1) ?? '';
  try {
    return JSON.parse(line) as JsonAnswer;
  } catch {
    throw new Error(`the last line is no JSON: ${stdout}${stderr}`);
  }
}
