// The model-specific registers (MSRs) that a vCPU's state treats apart; numbers from the Intel and AMD manuals and the
// kernel's asm/msr-index.h and asm/kvm_para.h. Used by vcpu.cc.
#pragma once

#include <cstdint>

namespace bough::vmm {

constexpr std::uint32_t kMsrTsc = 0x10;
constexpr std::uint32_t kMsrTscDeadline = 0x6E0;
/// KVM's own, 0x4b564d00 to 0x4b564dff: clock, asynchronous page faults, steal time, end of interrupt.
constexpr std::uint32_t kMsrKvmFirst = 0x4B564D00;
/// Counters that move by themselves, so that two readings differ: time stamp, SMIs, MPERF, APERF, and Hyper-V's run
/// time and reference time, which KVM counts whether or not the guest sees them.
constexpr bool movesByItself(std::uint32_t index) {
  switch (index) {
    case kMsrTsc:
    case 0x34:
    case 0xE7:
    case 0xE8:
    case 0x40000010:
    case 0x40000020:
      return true;
    default:
      return false;
  }
}

}  // namespace bough::vmm
