// One virtual CPU: its descriptor, its shared page, and all of its state as one value. Used by the machine and its vCPU
// threads. What the state holds and the order in which it is taken and put back: docs/fork.md.
#pragma once

#include <linux/kvm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "native/common/codec.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/kvm/kvm.h"

namespace bough::vmm {

struct VcpuState {
  kvm_mp_state run{};
  kvm_regs registers{};
  kvm_sregs special{};
  /// struct kvm_xsave; larger where the CPU has more state (KVM_GET_XSAVE2).
  std::vector<std::uint8_t> xsave;
  kvm_xcrs xcrs{};
  kvm_debugregs debug{};
  kvm_lapic_state lapic{};
  std::uint32_t tscKhz = 0;
  /// Guest TSC minus host TSC: right on the same host in the same boot only.
  std::optional<std::uint64_t> tscOffset;
  std::vector<kvm_msr_entry> msrs;
  kvm_vcpu_events events{};

  void encode(Encoder& out) const;
  /// False if the bytes cannot be a state; what they say of the guest is for KVM to refuse.
  static bool decode(Decoder& in, VcpuState& state);
};

class Vcpu {
 public:
  /// Errors: E_KVM_VCPU.
  static Result<Vcpu> make(const Kvm& kvm, int vm, unsigned index, std::span<const kvm_cpuid_entry2> cpuid);

  Vcpu(Vcpu&& other) noexcept;
  Vcpu& operator=(Vcpu&&) = delete;
  Vcpu(const Vcpu&) = delete;
  Vcpu& operator=(const Vcpu&) = delete;
  ~Vcpu();

  int fd() const { return fd_.get(); }
  kvm_run* run() const { return run_; }

  /// Which of the MSRs that KVM lists this vCPU lets be read and written back: some are constants of the host, some
  /// belong to features that the guest's CPUID does not have. On a vCPU that has not run.
  std::vector<std::uint32_t> usableMsrs(std::span<const std::uint32_t> listed) const;

  /// All state, into memory that `state` has already where it has been used before. The vCPU is stopped and has no exit
  /// pending. `msrs`: what usableMsrs() found.
  Result<Done> save(VcpuState& state, std::span<const std::uint32_t> msrs) const;
  /// Puts all of it back. `sameBoot`: the state was taken on this host since it was booted, so the TSC goes on by its
  /// offset; otherwise it goes on from its value. Errors: E_KVM_STATE, naming what KVM refused.
  Result<Done> restore(const VcpuState& state, bool sameBoot) const;
  /// What differs between `state` and what the vCPU has now, leaving out what time changes; empty if nothing does.
  std::string differences(const VcpuState& state, std::span<const std::uint32_t> msrs) const;

 private:
  Vcpu(UniqueFd fd, kvm_run* run, std::size_t runSize, std::size_t xsaveSize)
      : fd_(std::move(fd)), run_(run), runSize_(runSize), xsaveSize_(xsaveSize) {}

  UniqueFd fd_;
  kvm_run* run_;
  std::size_t runSize_;
  std::size_t xsaveSize_;
};

}  // namespace bough::vmm
