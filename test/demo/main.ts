// `npm run demo`: the main job without a screen. Prints a readable report, or with --json one JSON object as its last line;
// the exit status is 0 only if ok.
//
//   npm run -s demo -- [--json] [--mode process|microvm] [--branches N]
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { describeError } from '../../helper/cli/outcome.js';
import { findBoughfs } from '../../helper/files/boughfs-process.js';
import { root, run } from '../harness.js';
import { runDemo, type DemoResult } from './demo.js';
import { refusal, reportText } from './report.js';

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean', default: false },
      mode: { type: 'string', default: 'process' },
      branches: { type: 'string', default: '3' },
    },
  });
  const print = (result: object & { readonly ok: boolean }, text: string) => {
    console.log(values.json ? JSON.stringify(result) : text);
    process.exitCode = result.ok ? 0 : 1;
  };
  const refuse = (code: string, message: string, fix: string) => {
    const result = refusal(values.mode, { code, message, fix });
    if (values.json) process.stderr.write(`demo: ${code}: ${message}\n  fix: ${fix}\n`);
    print(result, `demo: ${code}: ${message}\n  fix: ${fix}`);
  };
  const branches = Number(values.branches);
  if (!Number.isInteger(branches) || branches < 1 || branches > 16) {
    refuse('E_USAGE', `--branches takes a number from 1 to 16, not "${values.branches}".`, '--branches 3');
    return;
  }
  if (values.mode === 'microvm') {
    refuse(
      'E_NO_MICROVM',
      'This version of Bough has no microVMs: a running process cannot fork yet.',
      '--mode process',
    );
    return;
  }
  if (values.mode !== 'process') {
    refuse('E_USAGE', `--mode takes process or microvm, not "${values.mode}".`, '--mode process');
    return;
  }
  try {
    await buildIfMissing();
    const result: DemoResult = await runDemo(branches, values.json ? () => undefined : (line) => console.log(line));
    print(result, reportText(result));
  } catch (error) {
    const { code, message, fix } = describeError(error);
    refuse(code, message, fix);
    if (code === 'E_INTERNAL' && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  }
}

/** A fresh checkout has no programs yet. */
async function buildIfMissing(): Promise<void> {
  try {
    findBoughfs(process.env);
    if (existsSync(join(root, 'dist', 'helper.js'))) return;
  } catch {
    // It is built below.
  }
  process.stderr.write('demo: building first\n');
  const { status, out, err } = await run('node', [join(root, 'scripts', 'build.mjs')], { cwd: root });
  if (status !== 0) throw new Error(`the build failed: ${out}${err}`);
}

await main();
