// bough-init as pid 1, asked through the host's own client: programs, terminals, lost connections, freezing, hostile bytes. Its
// namespaces stand in for a machine; the machine itself is tested where there is KVM.
//
//   tsx test/guest/main.ts [part of a name]
// Last line: `N passed, N failed, N skipped`.
import { Suite } from '../cli/suite.js';
import { forkTests } from './fork.js';
import { hostileTests } from './hostile.js';
import { processTests } from './processes.js';
import { terminalTests } from './terminals.js';
import { bootTests } from './boot.js';

const suite = new Suite();
const only = process.argv[2];
for (const [name, tests] of Object.entries({ bootTests, processTests, terminalTests, forkTests, hostileTests })) {
  if (only === undefined || name.startsWith(only)) await tests(suite);
}
suite.finish();
