// Runs a command where KVM works: here, or in an emulated machine whose root is this computer's (read-only; the checkout
// and --share folders can be changed, /tmp is the machine's own).
//   node scripts/kvm-host.mjs [--keep NAME] [--share FOLDER]… [--memory MIB] -- command args…
//   node scripts/kvm-host.mjs --stop NAME
// Without --keep the machine is booted for this command and ends with it. Output and exit status are the command's; 125
// says that there is no machine.
import { constants } from 'node:os';
import { parseArgs } from 'node:util';
import { graceMs, openKvmHost, stopKept } from './kvm-host/host.mjs';
import { printError, SetupError } from './report.mjs';

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      keep: { type: 'string' },
      stop: { type: 'string' },
      share: { type: 'string', multiple: true, default: [] },
      memory: { type: 'string' },
    },
  });
  if (values.stop !== undefined) {
    console.log((await stopKept(values.stop)) ? `stopped ${values.stop}` : `${values.stop} was not up`);
    return 0;
  }
  if (positionals.length === 0) {
    throw new SetupError(
      'BOUGH_KVM_HOST_USAGE',
      'There is nothing to run',
      'no command was given',
      'node scripts/kvm-host.mjs [--keep NAME] [--share FOLDER] -- command args…',
    );
  }
  const host = await openKvmHost({
    shares: values.share,
    ...(values.keep === undefined ? {} : { keep: values.keep }),
    ...(values.memory === undefined ? {} : { memoryMib: Number(values.memory) }),
  });
  try {
    const running = await host.start(
      positionals,
      {},
      {
        output: (bytes) => process.stdout.write(bytes),
        error: (bytes) => process.stderr.write(bytes),
      },
    );
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
      process.on(signal, () => {
        running.kill(signal);
        // Who ends this program wants it to end; Ctrl-C may be meant for a program that goes on.
        if (signal !== 'SIGINT') setTimeout(() => running.kill('SIGKILL'), graceMs).unref();
      });
    }
    process.stdin.on('data', (bytes) => running.write(bytes)).on('end', () => running.endInput());
    const { status, signal } = await running.ended;
    process.stdin.destroy();
    return signal === null ? (status ?? 0) : 128 + constants.signals[signal];
  } finally {
    await host.close();
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  printError(error);
  process.exitCode = 125;
}
