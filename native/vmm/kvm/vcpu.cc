// See vcpu.h. The order of both directions matters and is explained in docs/fork.md; requests and structures: the
// kernel's Documentation/virt/kvm/api.rst and devices/vcpu.rst.
#include "native/vmm/kvm/vcpu.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "native/vmm/kvm/msrs.h"

namespace bough::vmm {

namespace {

/// KVM takes at most this many MSRs in one call (MAX_IO_MSRS).
constexpr std::size_t kMsrBatch = 256;

Error stateError(const std::string& what) {
  return Error{errno, "E_KVM_STATE", "KVM refused " + what + " (" + std::strerror(errno) + ")"};
}

Error vcpuError(const std::string& what) {
  return Error{errno, "E_KVM_VCPU",
               "a virtual CPU could not be made: " + what + " (" + std::strerror(errno) +
                   "): end another machine, or give this one fewer CPUs"};
}

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

/// How many of `entries` KVM read or wrote: it stops at the first that it refuses.
int transfer(int fd, unsigned long request, std::span<kvm_msr_entry> entries) {
  KvmList<kvm_msr_entry, kMsrBatch> batch(entries.size());
  std::copy(entries.begin(), entries.end(), batch.room().begin());
  const int done = kvmIoctl(fd, request, batch.argument());
  if (done > 0 && request == kGetMsrs) std::copy_n(batch.room().begin(), done, entries.begin());
  return done;
}

Result<Done> readMsrs(int fd, std::span<const std::uint32_t> indices, std::vector<kvm_msr_entry>& out) {
  out.resize(indices.size());
  for (std::size_t i = 0; i < indices.size(); i++) out[i] = {indices[i], 0, 0};
  for (std::size_t at = 0; at < out.size(); at += kMsrBatch) {
    const std::size_t count = std::min(kMsrBatch, out.size() - at);
    const int done = transfer(fd, kGetMsrs, std::span(out).subspan(at, count));
    if (done != static_cast<int>(count)) {
      return stateError("to read MSR " + hex(out[at + static_cast<std::size_t>(std::max(done, 0))].index));
    }
  }
  return Done{};
}

Result<Done> writeMsrs(int fd, std::vector<kvm_msr_entry> entries) {
  for (std::size_t at = 0; at < entries.size(); at += kMsrBatch) {
    const std::size_t count = std::min(kMsrBatch, entries.size() - at);
    const int done = transfer(fd, kSetMsrs, std::span(entries).subspan(at, count));
    if (done != static_cast<int>(count)) {
      const kvm_msr_entry& refused = entries[at + static_cast<std::size_t>(std::max(done, 0))];
      return stateError("MSR " + hex(refused.index) + " = " + hex(refused.data));
    }
  }
  return Done{};
}

kvm_device_attr tscOffsetAttribute(std::uint64_t& offset) {
  kvm_device_attr attribute{};
  attribute.group = KVM_VCPU_TSC_CTRL;
  attribute.attr = KVM_VCPU_TSC_OFFSET;
  attribute.addr = reinterpret_cast<std::uint64_t>(&offset);
  return attribute;
}

std::optional<std::uint64_t> tscOffset(int fd) {
  std::uint64_t offset = 0;
  const kvm_device_attr attribute = tscOffsetAttribute(offset);
  if (kvmIoctl(fd, KVM_GET_DEVICE_ATTR, &attribute) != 0) return std::nullopt;
  return offset;
}

}  // namespace

Result<Vcpu> Vcpu::make(const Kvm& kvm, int vm, unsigned index, std::span<const kvm_cpuid_entry2> cpuid) {
  UniqueFd fd(kvmIoctl(vm, KVM_CREATE_VCPU, static_cast<unsigned long>(index)));
  if (!fd) return vcpuError("KVM_CREATE_VCPU");
  void* run = ::mmap(nullptr, kvm.runSize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (run == MAP_FAILED) return vcpuError("mmap of its page");
  Vcpu vcpu(std::move(fd), static_cast<kvm_run*>(run), kvm.runSize(), kvm.xsaveSize());
  KvmList<kvm_cpuid_entry2, 256> list(cpuid.size());
  if (cpuid.size() > list.kCapacity) return Error{EINVAL, "E_KVM_VCPU", "the CPUID list is too long"};
  std::copy(cpuid.begin(), cpuid.end(), list.room().begin());
  if (kvmIoctl(vcpu.fd(), kSetCpuid2, list.argument()) != 0) return vcpuError("KVM_SET_CPUID2");
  return vcpu;
}

Vcpu::Vcpu(Vcpu&& other) noexcept
    : fd_(std::move(other.fd_)),
      run_(std::exchange(other.run_, nullptr)),
      runSize_(other.runSize_),
      xsaveSize_(other.xsaveSize_) {}

Vcpu::~Vcpu() {
  if (run_ != nullptr) ::munmap(run_, runSize_);
}

std::vector<std::uint32_t> Vcpu::usableMsrs(std::span<const std::uint32_t> listed) const {
  std::vector<std::uint32_t> usable;
  for (const std::uint32_t index : listed) {
    std::array<kvm_msr_entry, 1> one{kvm_msr_entry{index, 0, 0}};
    if (transfer(fd(), kGetMsrs, one) == 1 && transfer(fd(), kSetMsrs, one) == 1) usable.push_back(index);
  }
  return usable;
}

Result<Done> Vcpu::save(VcpuState& state, std::span<const std::uint32_t> msrs) const {
  const auto get = [this](unsigned long request, void* to) { return kvmIoctl(fd(), request, to) >= 0; };
  // First: it folds pending INIT and SIPI into what the others read.
  if (!get(KVM_GET_MP_STATE, &state.run)) return stateError("KVM_GET_MP_STATE");
  if (!get(KVM_GET_REGS, &state.registers)) return stateError("KVM_GET_REGS");
  if (!get(KVM_GET_SREGS, &state.special)) return stateError("KVM_GET_SREGS");
  if (xsaveSize_ > kXsaveSize) {
    state.xsave.resize(xsaveSize_);
    if (!get(kGetXsave2, state.xsave.data())) return stateError("KVM_GET_XSAVE2");
  } else {
    state.xsave.resize(kXsaveSize);
    if (!get(kGetXsave, state.xsave.data())) return stateError("KVM_GET_XSAVE");
  }
  // A CPU without XSAVE has no XCR0.
  if (!get(KVM_GET_XCRS, &state.xcrs)) state.xcrs = {};
  if (!get(KVM_GET_DEBUGREGS, &state.debug)) return stateError("KVM_GET_DEBUGREGS");
  if (!get(KVM_GET_LAPIC, &state.lapic)) return stateError("KVM_GET_LAPIC");
  const int khz = kvmIoctl(fd(), KVM_GET_TSC_KHZ);
  state.tscKhz = khz > 0 ? static_cast<std::uint32_t>(khz) : 0;
  state.tscOffset = tscOffset(fd());
  BOUGH_TRY(readMsrs(fd(), msrs, state.msrs));
  // Last: reading the others may deliver what is pending.
  if (!get(KVM_GET_VCPU_EVENTS, &state.events)) return stateError("KVM_GET_VCPU_EVENTS");
  return Done{};
}

Result<Done> Vcpu::restore(const VcpuState& state, bool sameBoot) const {
  const auto set = [this](unsigned long request, const void* from) { return kvmIoctl(fd(), request, from) >= 0; };
  if (state.tscKhz != 0) {
    const int khz = kvmIoctl(fd(), KVM_GET_TSC_KHZ);
    // KVM's own tolerance: within 250 parts per million the clock needs no scaling.
    const auto far = static_cast<std::int64_t>(state.tscKhz) * 250 / 1'000'000;
    if (std::abs(static_cast<std::int64_t>(state.tscKhz) - khz) > far &&
        kvmIoctl(fd(), KVM_SET_TSC_KHZ, static_cast<unsigned long>(state.tscKhz)) != 0) {
      return stateError("a clock of " + std::to_string(state.tscKhz) + " kHz");
    }
  }
  if (!set(KVM_SET_MP_STATE, &state.run)) return stateError("KVM_SET_MP_STATE");
  if (!set(KVM_SET_REGS, &state.registers)) return stateError("KVM_SET_REGS");
  if (!set(KVM_SET_SREGS, &state.special)) return stateError("KVM_SET_SREGS");
  const std::size_t expected = std::max(xsaveSize_, kXsaveSize);
  if (state.xsave.size() != expected) {
    errno = EINVAL;
    return stateError("extended registers of " + std::to_string(state.xsave.size()) + " bytes");
  }
  if (!set(kSetXsave, state.xsave.data())) return stateError("KVM_SET_XSAVE");
  if (state.xcrs.nr_xcrs != 0 && !set(KVM_SET_XCRS, &state.xcrs)) return stateError("KVM_SET_XCRS");
  if (!set(KVM_SET_DEBUGREGS, &state.debug)) return stateError("KVM_SET_DEBUGREGS");
  // Before the MSRs: the deadline timer is armed only in an APIC whose mode says so.
  if (!set(KVM_SET_LAPIC, &state.lapic)) return stateError("KVM_SET_LAPIC");

  std::uint64_t offset = state.tscOffset.value_or(0);
  const bool byOffset = sameBoot && state.tscOffset.has_value();
  std::vector<kvm_msr_entry> first;
  std::vector<kvm_msr_entry> deadline;
  for (const kvm_msr_entry& entry : state.msrs) {
    if (entry.index == kMsrTscDeadline)
      deadline.push_back(entry);
    else if (entry.index != kMsrTsc || !byOffset)
      first.push_back(entry);
  }
  BOUGH_TRY(writeMsrs(fd(), std::move(first)));
  if (byOffset) {
    const kvm_device_attr attribute = tscOffsetAttribute(offset);
    if (kvmIoctl(fd(), KVM_SET_DEVICE_ATTR, &attribute) != 0) return stateError("a TSC offset");
  }
  // After the TSC: it is a time on it.
  BOUGH_TRY(writeMsrs(fd(), std::move(deadline)));
  if (!set(KVM_SET_VCPU_EVENTS, &state.events)) return stateError("KVM_SET_VCPU_EVENTS");
  // Tells the guest's watchdog that time went by. A guest without kvm-clock has nothing to tell.
  kvmIoctl(fd(), KVM_KVMCLOCK_CTRL);
  return Done{};
}

std::string Vcpu::differences(const VcpuState& state, std::span<const std::uint32_t> msrs) const {
  VcpuState now;
  if (const auto saved = save(now, msrs); !saved) return saved.error().message;
  std::string out;
  const auto compare = [&out](const char* name, const auto& before, const auto& after) {
    if (std::memcmp(&before, &after, sizeof before) != 0) out += std::string(name) + " ";
  };
  compare("registers", state.registers, now.registers);
  compare("special-registers", state.special, now.special);
  compare("debug-registers", state.debug, now.debug);
  compare("run-state", state.run, now.run);
  if (state.xsave != now.xsave) out += "extended-registers ";
  for (std::size_t i = 0; i < state.msrs.size() && i < now.msrs.size(); i++) {
    if (!movesByItself(state.msrs[i].index) && state.msrs[i].index != kMsrTscDeadline &&
        state.msrs[i].data != now.msrs[i].data) {
      out += "MSR " + hex(state.msrs[i].index) + " " + hex(state.msrs[i].data) + " -> " + hex(now.msrs[i].data) + " ";
    }
  }
  return out;
}

}  // namespace bough::vmm
