// See vm.h. Requests and structures: the kernel's Documentation/virt/kvm/api.rst.
#include "native/vmm/kvm/vm.h"

#include <time.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace bough::vmm {

namespace {

/// Three pages that Intel's KVM needs below 4 GiB and that no RAM or device may use; the last page before the
/// firmware's.
constexpr unsigned long kTssAddress = 0xFFFB'D000;

Error vmError(const std::string& what) {
  if (errno == ENOMEM) {
    return Error{errno, "E_NO_MEMORY",
                 "the host has no memory for another machine (" + what + "): end one and try again"};
  }
  return Error{errno, "E_KVM_VM", "a virtual machine could not be made: " + what + " (" + std::strerror(errno) + ")"};
}

Error stateError(const char* what) {
  return Error{errno, "E_KVM_STATE", std::string("KVM refused ") + what + " (" + std::strerror(errno) + ")"};
}

std::uint64_t wallClockNs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Result<Vm> Vm::make(const Kvm& kvm, const GuestMemory& memory) {
  UniqueFd fd(kvmIoctl(kvm.fd(), KVM_CREATE_VM, 0UL));
  if (!fd) return vmError("KVM_CREATE_VM");
  if (kvmIoctl(fd.get(), KVM_SET_TSS_ADDR, kTssAddress) != 0) return vmError("KVM_SET_TSS_ADDR");
  if (kvmIoctl(fd.get(), KVM_CREATE_IRQCHIP) != 0) return vmError("KVM_CREATE_IRQCHIP");
  kvm_pit_config pit{};
  // The speaker's port is the timer's too; without this, reading it would leave KVM each time.
  pit.flags = KVM_PIT_SPEAKER_DUMMY;
  if (kvmIoctl(fd.get(), KVM_CREATE_PIT2, &pit) != 0) return vmError("KVM_CREATE_PIT2");
  Vm vm(std::move(fd));
  BOUGH_TRY(vm.addMemory(memory));
  return vm;
}

namespace {
Result<Done> setRegions(int fd, const GuestMemory& memory, bool present) {
  std::uint32_t slot = 0;
  for (const RamRegion& region : memory.regions()) {
    kvm_userspace_memory_region kernels{};
    kernels.slot = slot++;
    kernels.guest_phys_addr = raw(region.start);
    kernels.memory_size = present ? region.size : 0;
    kernels.userspace_addr = reinterpret_cast<std::uint64_t>(region.host);
    if (kvmIoctl(fd, KVM_SET_USER_MEMORY_REGION, &kernels) != 0) return vmError("KVM_SET_USER_MEMORY_REGION");
  }
  return Done{};
}
}  // namespace

Result<Done> Vm::addMemory(const GuestMemory& memory) const { return setRegions(fd(), memory, true); }
Result<Done> Vm::removeMemory(const GuestMemory& memory) const { return setRegions(fd(), memory, false); }

void Vm::pulse(std::uint32_t line) const {
  kvm_irq_level level{};
  level.irq = line;
  level.level = 1;
  kvmIoctl(fd(), KVM_IRQ_LINE, &level);
  level.level = 0;
  kvmIoctl(fd(), KVM_IRQ_LINE, &level);
}

Result<Done> Vm::save(VmState& state) const {
  if (kvmIoctl(fd(), KVM_GET_PIT2, &state.pit) < 0) return stateError("KVM_GET_PIT2");
  if (kvmIoctl(fd(), KVM_GET_CLOCK, &state.clock) < 0) return stateError("KVM_GET_CLOCK");
  state.takenAtNs = wallClockNs();
  for (std::size_t i = 0; i < state.chips.size(); i++) {
    state.chips.at(i).chip_id = static_cast<std::uint32_t>(i);
    if (kvmIoctl(fd(), KVM_GET_IRQCHIP, &state.chips.at(i)) < 0) return stateError("KVM_GET_IRQCHIP");
  }
  return Done{};
}

Result<Done> Vm::restore(const VmState& state) const {
  if (kvmIoctl(fd(), KVM_SET_PIT2, &state.pit) < 0) return stateError("KVM_SET_PIT2");
  // The guest's clock goes on by the time that passed since: KVM adds it where it read the wall clock at the same
  // instant.
  kvm_clock_data clock = state.clock;
  clock.flags &= KVM_CLOCK_REALTIME;
  if (clock.flags == 0) {
    const std::uint64_t now = wallClockNs();
    clock.clock += now > state.takenAtNs ? now - state.takenAtNs : 0;
  }
  if (kvmIoctl(fd(), KVM_SET_CLOCK, &clock) < 0) return stateError("KVM_SET_CLOCK");
  for (const kvm_irqchip& chip : state.chips) {
    if (kvmIoctl(fd(), KVM_SET_IRQCHIP, &chip) < 0) return stateError("KVM_SET_IRQCHIP");
  }
  return Done{};
}

}  // namespace bough::vmm
