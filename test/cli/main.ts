// The command line as a person uses it: the built `bough` with a helper, boughfs and bubblewrap of its own.
// `tsx test/cli/main.ts`; last line: `N passed, N failed, N skipped`.
import { attachTests } from './attach.js';
import { branchTests } from './branches.js';
import { commitTests } from './commits.js';
import { Command } from './command.js';
import { fileTests } from './files.js';
import { Suite } from './suite.js';
import { endTests, surfaceTests } from './surface.js';
import { World } from '../demo/world.js';

const suite = new Suite();
const world = new World();
try {
  const bough = new Command(world);
  await surfaceTests(suite, bough);
  await fileTests(suite, bough);
  await attachTests(suite, bough);
  await branchTests(suite, bough);
  await commitTests(suite, bough);
  await endTests(suite, bough);
} finally {
  await world.shutdown().catch(() => undefined);
  await world.remove();
}
suite.finish();
