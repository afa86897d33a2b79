// The model-specific registers (MSRs) that a vCPU's state treats apart; numbers from the Intel and AMD manuals and the
// kernel's asm/msr-index.h and asm/kvm_para.h. Used by vcpu.cc.
#pragma once

#include <cstdint>

namespace bough::vmm {

constexpr std::uint32_t kMsrTsc = 0x10;
constexpr std::uint32_t kMsrTscDeadline = 0x6E0;
/// KVM's own, 0x4b564d00 to 0x4b564dff: clock, asynchronous page faults, steal time, end of interrupt.
constexpr std::uint32_t kMsrKvmFirst = 0x4B564D00;
/// Counters that move by themselves, so that two readings differ.
constexpr bool movesByItself(std::uint32_t index) {
  return index == kMsrTsc || index == 0xE7 || index == 0xE8 /* MPERF, APERF */ ||
         index == 0x40000020 /* Hyper-V time */ || index == 0x34 /* SMI count */;
}

}  // namespace bough::vmm
