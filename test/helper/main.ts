// The helper as a whole, with the real boughfs and the real bubblewrap: each case has a daemon of its own.
//   tsx test/helper/main.ts [part of a case's name]
import { existsSync } from 'node:fs';
import { Checks } from '../harness.js';
import { commitKills } from './commit-kills.js';
import { crashes } from './crashes.js';
import { isolation } from './isolation.js';
import { mainJob } from './main-job.js';
import { merging } from './merging.js';
import { trouble } from './trouble.js';
import { volume } from './volume.js';
import { helperProgram } from './world.js';

/** Runs only the cases whose name holds the word, and says how long each took. */
class NamedChecks extends Checks {
  constructor(private readonly word: string) {
    super();
  }

  override async check(name: string, body: () => void | Promise<void>): Promise<boolean> {
    if (!name.includes(this.word)) return true;
    const start = Date.now();
    const passed = await super.check(name, body);
    console.log(`${passed ? 'ok    ' : 'not ok'} ${name} (${Date.now() - start} ms)`);
    return passed;
  }
}

if (!existsSync(helperProgram)) throw new Error(`${helperProgram} is not there. Build it with: npm run build`);
const checks = new NamedChecks(process.argv[2] ?? '');
for (const part of [mainJob, isolation, merging, crashes, commitKills, trouble, volume]) await part(checks);
console.log(checks.summary());
process.exit(checks.failed === 0 && checks.passed > 0 ? 0 : 1);
