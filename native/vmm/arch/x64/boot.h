// Puts a kernel into RAM so that the first vCPU can enter it without firmware: PVH, Xen's "x86/HVM direct boot ABI".
// Used by the machine.
#pragma once

#include <linux/kvm.h>

#include <cstdint>
#include <string>

#include "native/common/result.h"
#include "native/vmm/memory/guest_memory.h"

namespace bough::vmm {

struct BootFiles {
  /// An uncompressed ELF64 kernel with a PVH entry (Linux: CONFIG_PVH).
  int kernel = -1;
  /// -1: none.
  int initramfs = -1;
  std::string commandLine;
  unsigned vcpus = 1;
};

/// Loads everything; answers the entry point. Errors: E_KERNEL (not such a kernel, or it does not fit), E_INITRAMFS,
/// E_COMMAND_LINE, E_RAM_SIZE.
Result<std::uint32_t> loadKernel(const GuestMemory& memory, const BootFiles& files);

/// The registers that PVH wants at the entry: 32-bit protected mode, flat segments, paging off, ebx = start info.
void enterByPvh(std::uint32_t entry, kvm_regs& registers, kvm_sregs& special);

}  // namespace bough::vmm
