// /dev/kvm: what this host's KVM can do, checked once, and the door to new machines. Used by the machine; the
// descriptor may stay open across fork(2), unlike those of a VM.
#pragma once

#include <linux/kvm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::vmm {

/// ioctl(2) that goes on after a signal. Answers what ioctl answers, with errno set.
int kvmIoctl(int fd, unsigned long request, const void* argument);
int kvmIoctl(int fd, unsigned long request, unsigned long argument = 0);

/// A structure of the kernel that ends in an array: a head with a count, then room for `kMost` entries.
template <typename Head, typename Entry, std::size_t kMost>
class KvmList {
 public:
  static constexpr std::size_t kCapacity = kMost;
  Head& head() { return *reinterpret_cast<Head*>(bytes_.data()); }
  std::span<Entry, kMost> entries() {
    return std::span<Entry, kMost>(reinterpret_cast<Entry*>(bytes_.data() + sizeof(Head)), kMost);
  }
  const void* argument() const { return bytes_.data(); }

 private:
  alignas(8) std::array<std::byte, sizeof(Head) + kMost * sizeof(Entry)> bytes_{};
};

class Kvm {
 public:
  /// Errors: E_KVM_MISSING (no device), E_KVM_DENIED (no permission), E_KVM_UNUSABLE (another API version, no in-kernel
  /// interrupt controller, or another capability that a machine here needs).
  static Result<std::unique_ptr<Kvm>> open();

  int fd() const { return fd_.get(); }
  /// Bytes of a vCPU's shared page (struct kvm_run and what follows it).
  std::size_t runSize() const { return runSize_; }
  /// Bytes that KVM_GET_XSAVE2 fills; 0 where only the old KVM_GET_XSAVE is there.
  std::size_t xsaveSize() const { return xsaveSize_; }
  /// KVM_GET_SUPPORTED_CPUID.
  const std::vector<kvm_cpuid_entry2>& supportedCpuid() const { return cpuid_; }
  /// KVM_GET_MSR_INDEX_LIST.
  const std::vector<std::uint32_t>& msrIndices() const { return msrs_; }
  /// Whether a VM's clock can be set by what the host's wall clock says (KVM_CLOCK_REALTIME, Linux 5.16).
  bool clockRealtime() const { return clockRealtime_; }
  /// Whether KVM runs without VT-x or AMD-V beneath it: kernel code is emulated, and the guest needs the reduced CPU.
  bool software() const { return software_; }

 private:
  Kvm() = default;

  UniqueFd fd_;
  std::size_t runSize_ = 0;
  std::size_t xsaveSize_ = 0;
  std::vector<kvm_cpuid_entry2> cpuid_;
  std::vector<std::uint32_t> msrs_;
  bool clockRealtime_ = false;
  bool software_ = false;
};

}  // namespace bough::vmm
