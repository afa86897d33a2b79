// npm run -s bench -- <what> [--json] [--quick] [--row id]…   Benchmarks, each against a named peer measured in the same run.
//   --quick  ends within a minute, with fewer samples and smaller files
//   --row    only rows whose id begins with this
//   --save   also writes the report to bench/results/<what>.json
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../test/harness.js';
import { benchFs } from './fs/main.js';
import { printReport, type Report } from './rows.js';
import { benchTransport } from './transport/main.js';

const benchmarks: Readonly<Record<string, (quick: boolean, rows: readonly string[]) => Promise<Report>>> = {
  fs: benchFs,
  transport: benchTransport,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    row: { type: 'string', multiple: true, default: [] },
  },
});
const what = positionals[0] ?? '';
const benchmark = benchmarks[what];
if (benchmark === undefined) {
  console.error(`npm run -s bench -- <${Object.keys(benchmarks).join('|')}> [--json] [--quick] [--row id] [--save]`);
  process.exit(2);
}
const report = await benchmark(values.quick, values.row);
if (!values.json) printReport(report);
else console.log(JSON.stringify(report));
if (values.save) {
  const folder = join(root, 'bench', 'results');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${what}.json`), `${JSON.stringify(report, null, 2)}\n`);
}
process.exit(report.ok ? 0 : 1);
