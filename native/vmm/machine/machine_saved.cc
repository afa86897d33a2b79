// A machine's state as bytes and back; RAM and the file around it are saved/'s.
#include "native/common/crc32c.h"
#include "native/vmm/kvm/state_codec.h"
#include "native/vmm/machine/machine.h"
#include "native/vmm/machine/parts.h"

namespace bough::vmm {

namespace {

constexpr std::size_t kMostMsrs = 1024;
constexpr std::size_t kMostFileSystems = 32;

Error damaged(const char* what) {
  return Error{EINVAL, "E_SAVED_DAMAGED", std::string("the saved state cannot be right: ") + what};
}

}  // namespace

void MachineConfig::encode(Encoder& out) const {
  out.number(ramBytes);
  out.number(vcpus);
  out.flag(hugePages);
  out.byte(static_cast<std::uint8_t>(cpu));
  out.bytes(commandLine);
  out.number(vsockCid);
  out.number(fileSystems.size());
  for (const std::string& tag : fileSystems) out.bytes(tag);
}

bool MachineConfig::decode(Decoder& in, MachineConfig& config) {
  config.ramBytes = in.number();
  config.vcpus = in.number32();
  config.hugePages = in.flag();
  const std::uint8_t cpu = in.byte();
  config.cpu = static_cast<CpuProfile>(cpu);
  config.commandLine = in.bytes();
  config.vsockCid = in.number32();
  const std::size_t tags = in.count();
  if (!in.ok() || cpu > static_cast<std::uint8_t>(CpuProfile::kReduced) || tags > kMostFileSystems) return false;
  config.fileSystems.clear();
  for (std::size_t i = 0; i < tags; i++) config.fileSystems.push_back(in.bytes());
  return in.ok();
}

std::uint32_t Machine::Parts::cpuDigest() const {
  Encoder out;
  for (unsigned i = 0; i < config_.vcpus; i++) {
    encodeList(out, guestCpuid(kvm_->supportedCpuid(), config_.cpu, i, config_.vcpus));
  }
  encodeList(out, msrs_);
  return crc32c(out.str());
}

std::string Machine::Parts::saveState() const {
  Encoder out;
  config_.encode(out);
  encodeList(out, msrs_);
  out.fixed32(cpuDigest());
  vmState_.encode(out);
  for (const VcpuState& state : vcpuStates_) state.encode(out);
  serial_->save(out);
  for (const Slot& slot : slots_) slot.transport->save(out);
  return out.take();
}

Result<Done> Machine::Parts::loadState(Decoder& in) {
  const std::uint32_t digest = in.fixed32();
  if (!in.ok()) return damaged("it is cut off");
  if (digest != cpuDigest()) {
    return Error{ENOTSUP, "E_SAVED_CPU",
                 "the machine was saved on another CPU or another kernel's KVM: load it where it was saved"};
  }
  if (!VmState::decode(in, vmState_)) return damaged("the interrupt controllers' state");
  vcpuStates_.resize(config_.vcpus);
  for (VcpuState& state : vcpuStates_) {
    if (!VcpuState::decode(in, state)) return damaged("a virtual CPU's state");
  }
  BOUGH_TRY(serial_->load(in));
  for (const Slot& slot : slots_) BOUGH_TRY(slot.transport->load(in));
  if (!in.ok() || !in.atEnd()) return damaged("it has more than a machine's state");
  return Done{};
}

Result<std::unique_ptr<Machine>> Machine::load(std::unique_ptr<Kvm> kvm, GuestMemory memory, std::string_view state,
                                               HostEnds ends, EventLoop& loop) {
  Decoder in(state);
  MachineConfig config;
  std::vector<std::uint32_t> msrs;
  if (!MachineConfig::decode(in, config) || !decodeList(in, msrs, kMostMsrs)) return damaged("the machine's shape");
  BOUGH_TRY(checkConfig(config));
  if (config.ramBytes != memory.size()) return damaged("its RAM has another size");
  auto parts = std::make_unique<Parts>(std::move(kvm), std::move(config), std::move(memory), loop);
  parts->msrs_ = std::move(msrs);
  BOUGH_TRY(parts->makeDevices());
  BOUGH_TRY(parts->loadState(in));
  BOUGH_TRY(parts->attach(std::move(ends)));
  BOUGH_TRY(parts->restoreKvm(false, false));
  parts->state_ = MachineState::kPaused;
  parts->pauseStarted_ = std::chrono::steady_clock::now();
  return std::unique_ptr<Machine>(new Machine(std::move(parts)));
}

}  // namespace bough::vmm
