// One KVM virtual machine: its descriptor, memslots, interrupt controllers, timer and clock. Used by the machine, which
// makes a new one of these in every forked child: KVM binds a VM to the address space that made it.
#pragma once

#include <linux/kvm.h>

#include <array>
#include <cstdint>

#include "native/common/codec.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/kvm/kvm.h"
#include "native/vmm/memory/guest_memory.h"

namespace bough::vmm {

struct VmState {
  kvm_pit_state2 pit{};
  kvm_clock_data clock{};
  /// CLOCK_REALTIME of the host when `clock` was read, in nanoseconds.
  std::uint64_t takenAtNs = 0;
  /// PIC master, PIC slave, I/O APIC.
  std::array<kvm_irqchip, 3> chips{};

  void encode(Encoder& out) const;
  static bool decode(Decoder& in, VmState& state);
};

class Vm {
 public:
  /// A VM with interrupt controllers and timer, all of `memory` in its memslots, and no vCPU. Errors: E_KVM_VM (KVM
  /// refused, with what it said), E_NO_MEMORY.
  static Result<Vm> make(const Kvm& kvm, const GuestMemory& memory);

  int fd() const { return fd_.get(); }

  /// Maps RAM into the guest, or takes it out again; no vCPU may run meanwhile.
  Result<Done> addMemory(const GuestMemory& memory) const;
  Result<Done> removeMemory(const GuestMemory& memory) const;

  /// One edge on an input of the I/O APIC (and of the PICs below 16).
  void pulse(std::uint32_t line) const;

  Result<Done> save(VmState& state) const;
  /// Errors: E_KVM_STATE.
  Result<Done> restore(const VmState& state) const;

 private:
  explicit Vm(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace bough::vmm
