// Which CPU the guest sees. Used by the machine when it boots.
#pragma once

#include <linux/kvm.h>

#include <cstdint>
#include <span>
#include <vector>

namespace bough::vmm {

enum class CpuProfile : std::uint8_t {
  /// All that KVM supports here, but for nested virtualization and asynchronous page faults.
  kFull = 0,
  /// For hosts whose KVM emulates kernel code: without the instructions that its emulator refuses.
  kReduced = 1,
};

/// CPUID for the vCPU with APIC id `index` of `vcpus`, from what KVM supports on this host.
std::vector<kvm_cpuid_entry2> guestCpuid(std::span<const kvm_cpuid_entry2> supported, CpuProfile profile,
                                         unsigned index, unsigned vcpus);

}  // namespace bough::vmm
