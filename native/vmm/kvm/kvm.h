// /dev/kvm: what this host's KVM can do, checked once, and the door to new machines. Used by the machine; the
// descriptor may stay open across fork(2), unlike those of a VM.
#pragma once

#include <linux/kvm.h>
#include <sys/ioctl.h>

#include <algorithm>
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

// Requests whose structure ends in a flexible array. Some kernels' headers give such a structure another size in C++
// than in C, and the size is part of the request's number: so these are spelled out, and KvmList stands for the
// structures.
constexpr unsigned long kGetMsrIndexList = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x02, 4);
constexpr unsigned long kGetSupportedCpuid = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x05, 8);
constexpr unsigned long kGetMsrs = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x88, 8);
constexpr unsigned long kSetMsrs = _IOC(_IOC_WRITE, KVMIO, 0x89, 8);
constexpr unsigned long kSetCpuid2 = _IOC(_IOC_WRITE, KVMIO, 0x90, 8);
constexpr std::size_t kXsaveSize = 4096;
constexpr unsigned long kGetXsave = _IOC(_IOC_READ, KVMIO, 0xA4, kXsaveSize);
constexpr unsigned long kSetXsave = _IOC(_IOC_WRITE, KVMIO, 0xA5, kXsaveSize);
constexpr unsigned long kGetXsave2 = _IOC(_IOC_READ, KVMIO, 0xCF, kXsaveSize);
static_assert(sizeof(kvm_cpuid_entry2) == 40 && sizeof(kvm_msr_entry) == 16);

/// A count in `kHead` bytes, then room for `kMost` entries: struct kvm_cpuid2, kvm_msrs (8) and kvm_msr_list (4) of
/// asm/kvm.h.
template <typename Entry, std::size_t kMost, std::size_t kHead = 8>
class KvmList {
 public:
  static constexpr std::uint32_t kCapacity = kMost;
  explicit KvmList(std::size_t count) { setCount(count); }
  std::uint32_t count() const { return std::min(head_.count, kCapacity); }
  std::span<Entry> entries() { return std::span(entries_).first(count()); }
  std::span<Entry, kMost> room() { return entries_; }
  const void* argument() const { return &head_; }

 private:
  struct alignas(kHead) Head {
    std::uint32_t count;
  };
  void setCount(std::size_t count) { head_.count = static_cast<std::uint32_t>(std::min<std::size_t>(count, kMost)); }

  Head head_{};
  std::array<Entry, kMost> entries_{};
};

class Kvm {
 public:
  /// Errors: E_KVM_MISSING (no device), E_KVM_DENIED (no permission), E_KVM_UNUSABLE (another API version, no in-kernel
  /// interrupt controller, or another capability that a machine here needs).
  static Result<std::unique_ptr<Kvm>> open();
  /// Another one for the same device, for a process that may not open it any more. Errors: those of fcntl(2).
  Result<std::unique_ptr<Kvm>> duplicate() const;

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
