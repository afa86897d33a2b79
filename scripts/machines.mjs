// What microVMs need of this computer before the first one starts: the guest kernel, and for the suites a place with KVM.
//   node scripts/machines.mjs
// Used by scripts/test.mjs.
import { ensureGuestKernel } from './guest-kernel.mjs';
import { hasKvm } from './kvm-host/host.mjs';
import { ensureBootFiles } from './kvm-host/initramfs.mjs';
import { withoutEmulation } from './kvm-host/machine.mjs';
import { runMain, SetupError } from './report.mjs';

/**
 * Has everything built and downloaded; quick where it is.
 * @returns {Promise<import('./guest-kernel.mjs').GuestKernel>}
 */
export async function ensureMachines() {
  if (!hasKvm()) {
    const reason = withoutEmulation();
    if (reason !== undefined) {
      throw new SetupError(
        'BOUGH_KVM_HOST_NONE',
        'There is neither KVM nor an emulation of it',
        `/dev/kvm runs no virtual CPU here, and ${reason}`,
        'apt-get install qemu-system-x86',
      );
    }
    await ensureBootFiles();
  }
  return ensureGuestKernel();
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    const kernel = await ensureMachines();
    console.log(`KVM: ${hasKvm() ? 'of this computer' : 'emulated'}\nguest kernel: ${kernel.path}`);
  });
}
