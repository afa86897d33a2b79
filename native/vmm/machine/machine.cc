// A machine's life: made, booted, paused, resumed, ended. See machine.h; how it becomes two is in machine_fork.cc.
#include "native/vmm/machine/machine.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include "native/vmm/arch/x64/boot.h"
#include "native/vmm/arch/x64/layout.h"
#include "native/vmm/arch/x64/mp_table.h"
#include "native/vmm/machine/parts.h"
#include "native/vmm/virtio/fs.h"
#include "native/vmm/virtio/rng.h"

namespace bough::vmm {

namespace {

using Clock = std::chrono::steady_clock;

Microseconds since(Clock::time_point start) { return std::chrono::duration_cast<Microseconds>(Clock::now() - start); }

Error wrongState(const char* what, MachineState state) {
  constexpr std::array kNames{"running", "paused", "frozen", "stopped"};
  return Error{EINVAL, "E_STATE",
               std::string("a machine that is ") + kNames.at(static_cast<std::size_t>(state)) + " cannot be " + what};
}

}  // namespace

Result<Done> checkConfig(const MachineConfig& config) {
  if (config.vcpus < 1 || config.vcpus > kMostVcpus) {
    return Error{
        EINVAL, "E_VCPUS",
        "a machine cannot have " + std::to_string(config.vcpus) + " CPUs: give 1 to " + std::to_string(kMostVcpus)};
  }
  // Each device has an interrupt line of its own; three are always there.
  constexpr std::size_t kMostFileSystems = layout::kIoApicLines - layout::kFirstVirtioLine - 3;
  if (config.fileSystems.size() > kMostFileSystems) {
    return Error{EINVAL, "E_FILE_SYSTEMS",
                 "a machine cannot have " + std::to_string(config.fileSystems.size()) + " file systems: at most " +
                     std::to_string(kMostFileSystems)};
  }
  return Done{};
}

Machine::Parts::Parts(std::unique_ptr<Kvm> kvm, MachineConfig config, GuestMemory memory, EventLoop& control)
    : kvm_(std::move(kvm)),
      config_(std::move(config)),
      memory_(std::move(memory)),
      control_(control),
      gate_(config_.vcpus) {}

Machine::Parts::~Parts() { stopVcpus(); }

Result<Done> Machine::Parts::makeDevices() {
  BOUGH_ASSIGN(io_, EventLoop::make());
  serialLine_ = std::make_unique<Line>(*this, layout::kSerialLine);
  serial_ = std::make_unique<Serial>(*serialLine_);
  portBus_.add(layout::kSerialPort, layout::kSerialPorts, *serial_);
  reset_ = std::make_unique<ResetPort>([this] { ended("reset"); });
  portBus_.add(layout::kResetPort, 1, *reset_);

  const auto place = [this](std::unique_ptr<VirtioDevice> device) {
    const auto index = static_cast<std::uint32_t>(slots_.size());
    auto line = std::make_unique<Line>(*this, layout::kFirstVirtioLine + index);
    auto transport = std::make_unique<VirtioMmio>(*device, memory_, *line, [this] { io_->wake(); });
    memoryBus_.add(layout::kVirtioStart + index * layout::kVirtioStride, VirtioMmio::kSize, *transport);
    slots_.push_back({std::move(device), std::move(line), std::move(transport)});
  };
  place(std::make_unique<Rng>());
  auto console = std::make_unique<Console>();
  console_ = console.get();
  place(std::move(console));
  auto vsock = std::make_unique<Vsock>(
      config_.vsockCid, [this](std::uint32_t port) { return vsockConnect_ ? vsockConnect_(port) : UniqueFd(); });
  vsock_ = vsock.get();
  place(std::move(vsock));
  for (const std::string& tag : config_.fileSystems) place(std::make_unique<Fs>(tag));

  return control_.watch(io_->fd(), EPOLLIN, [this](std::uint32_t) { serve(); });
}

Result<Done> Machine::Parts::attach(HostEnds ends) {
  const std::lock_guard lock(deviceLock_);
  BOUGH_TRY(serial_->attach(ends, *io_));
  for (const Slot& slot : slots_) BOUGH_TRY(slot.device->attach(ends, *io_));
  return Done{};
}

Result<Done> Machine::Parts::makeVm() {
  BOUGH_ASSIGN(vm_, Vm::make(*kvm_, memory_));
  for (unsigned i = 0; i < config_.vcpus; i++) {
    BOUGH_ASSIGN(Vcpu vcpu,
                 Vcpu::make(*kvm_, vm_->fd(), i, guestCpuid(kvm_->supportedCpuid(), config_.cpu, i, config_.vcpus)));
    vcpus_.push_back(std::move(vcpu));
  }
  return Done{};
}

Result<Done> Machine::Parts::startVcpus() {
  VcpuThread::installKick();
  context_ = std::make_unique<VcpuContext>(
      VcpuContext{gate_, portBus_, memoryBus_, deviceLock_, [this](const std::string& why) { ended(why); }, exits_});
  for (unsigned i = 0; i < config_.vcpus; i++) {
    threads_.push_back(std::make_unique<VcpuThread>(*context_, vcpus_[i], i));
    BOUGH_TRY(threads_.back()->start());
  }
  return Done{};
}

void Machine::Parts::stopVcpus() {
  if (threads_.empty()) return;
  if (gate_.closed()) gate_.open();
  for (const auto& thread : threads_) thread->end();
  threads_.clear();
}

void Machine::Parts::ended(const std::string& why) {
  {
    const std::lock_guard lock(reasonLock_);
    if (!reason_.empty()) return;
    reason_ = why;
  }
  ended_ = true;
  io_->wake();
}

void Machine::Parts::serve() {
  {
    const std::lock_guard lock(deviceLock_);
    io_->runOnce(0);
    for (const Slot& slot : slots_) {
      slot.transport->serve();
      slot.transport->signal();
    }
  }
  if (ended_ && state_ == MachineState::kRunning) {
    // The other vCPUs stop where they are; their state stays readable.
    park(Clock::now() + std::chrono::seconds(10));
    state_ = MachineState::kStopped;
    if (onStopped_) onStopped_();
  }
}

bool Machine::Parts::park(Clock::time_point deadline) {
  gate_.close();
  for (const auto& thread : threads_) thread->kick();
  return gate_.waitForAll(deadline);
}

bool Machine::Parts::drain(Clock::time_point deadline) {
  for (const Slot& slot : slots_) slot.device->drain();
  for (;;) {
    const bool quiet = std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.device->quiet(); });
    if (quiet) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{io_->fd(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(left.count()));
    io_->runOnce(0);
    for (const Slot& slot : slots_) slot.transport->signal();
  }
}

Result<Done> Machine::Parts::saveKvm() {
  vcpuStates_.resize(vcpus_.size());
  for (std::size_t i = 0; i < vcpus_.size(); i++) BOUGH_TRY(vcpus_[i].save(vcpuStates_[i], msrs_));
  return vm_->save(vmState_);
}

Result<Done> Machine::Parts::pause(std::chrono::milliseconds timeout) {
  if (state_ != MachineState::kRunning) return wrongState("paused", state_);
  pauseStarted_ = Clock::now();
  const auto deadline = pauseStarted_ + timeout;
  const auto goOn = [this](Error error) -> Error {
    for (const Slot& slot : slots_) slot.device->resume();
    gate_.open();
    io_->wake();
    return error;
  };
  if (!park(deadline)) {
    return goOn({ETIMEDOUT, "E_PARK", "a virtual CPU did not stop in time: the machine runs on; try again"});
  }
  const auto parked = Clock::now();
  const std::lock_guard lock(deviceLock_);
  if (!drain(deadline)) {
    return goOn({ETIMEDOUT, "E_DRAIN",
                 "a file system's server did not answer in time: the machine runs on; see whether the server hangs"});
  }
  const auto drained = Clock::now();
  if (auto saved = saveKvm(); !saved) return goOn(saved.error());
  metrics_.lastPause = {};
  metrics_.lastPause.park = std::chrono::duration_cast<Microseconds>(parked - pauseStarted_);
  metrics_.lastPause.drain = std::chrono::duration_cast<Microseconds>(drained - parked);
  metrics_.lastPause.save = since(drained);
  state_ = MachineState::kPaused;
  return Done{};
}

Result<Done> Machine::Parts::resume() {
  if (state_ != MachineState::kPaused) return wrongState("resumed", state_);
  const auto start = Clock::now();
  {
    const std::lock_guard lock(deviceLock_);
    for (const Slot& slot : slots_) slot.device->resume();
  }
  state_ = MachineState::kRunning;
  if (threads_.empty())
    BOUGH_TRY(startVcpus());
  else
    gate_.open();
  // What came in meanwhile, and what devices kept for this moment.
  io_->wake();
  metrics_.lastPause.resume = since(start);
  metrics_.lastPause.total = since(pauseStarted_);
  metrics_.pauses++;
  return Done{};
}

Machine::Machine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Machine::~Machine() = default;

Result<std::unique_ptr<Machine>> Machine::boot(std::unique_ptr<Kvm> kvm, MachineConfig config, int kernel,
                                               int initramfs, HostEnds ends, EventLoop& loop) {
  BOUGH_TRY(checkConfig(config));
  BOUGH_ASSIGN(GuestMemory memory, GuestMemory::anonymous(config.ramBytes, config.hugePages));
  auto parts = std::make_unique<Parts>(std::move(kvm), std::move(config), std::move(memory), loop);
  BOUGH_TRY(parts->makeDevices());
  BootFiles files{kernel, initramfs, parts->config_.commandLine, parts->config_.vcpus};
  for (std::size_t i = 0; i < parts->slots_.size(); i++) {
    // The kernel's Documentation/admin-guide/kernel-parameters.txt: virtio_mmio.device=<size>@<address>:<line>
    std::array<char, 64> device{};
    std::snprintf(device.data(), device.size(), " virtio_mmio.device=4K@0x%llx:%u",
                  static_cast<unsigned long long>(layout::kVirtioStart + i * layout::kVirtioStride),
                  static_cast<unsigned>(layout::kFirstVirtioLine + i));
    files.commandLine += device.data();
  }
  BOUGH_ASSIGN(const std::uint32_t entry, loadKernel(parts->memory_, files));
  BOUGH_TRY(parts->makeVm());
  const Vcpu& first = parts->vcpus_.front();
  parts->msrs_ = first.usableMsrs(parts->kvm_->msrIndices());
  kvm_regs registers{};
  kvm_sregs special{};
  if (kvmIoctl(first.fd(), KVM_GET_SREGS, &special) < 0) return sysError(errno, "KVM_GET_SREGS");
  enterByPvh(entry, registers, special);
  if (kvmIoctl(first.fd(), KVM_SET_SREGS, &special) < 0) return sysError(errno, "KVM_SET_SREGS");
  if (kvmIoctl(first.fd(), KVM_SET_REGS, &registers) < 0) return sysError(errno, "KVM_SET_REGS");
  BOUGH_TRY(parts->attach(std::move(ends)));
  parts->state_ = MachineState::kRunning;
  BOUGH_TRY(parts->startVcpus());
  return std::unique_ptr<Machine>(new Machine(std::move(parts)));
}

MachineState Machine::state() const { return parts_->state_; }

std::string Machine::stopReason() const {
  const std::lock_guard lock(parts_->reasonLock_);
  return parts_->reason_;
}

void Machine::onStopped(std::function<void()> handler) { parts_->onStopped_ = std::move(handler); }
Result<Done> Machine::pause(std::chrono::milliseconds timeout) { return parts_->pause(timeout); }
Result<Done> Machine::resume() { return parts_->resume(); }
Result<ForkOutcome> Machine::fork(std::vector<HostEnds> ends, const ForkOptions& options) {
  return parts_->fork(std::move(ends), options);
}
std::string Machine::saveState() const { return parts_->saveState(); }
const GuestMemory& Machine::memory() const { return parts_->memory_; }
const MachineConfig& Machine::config() const { return parts_->config_; }
std::uint32_t Machine::cpuDigest() const { return parts_->cpuDigest(); }

void Machine::consoleInput(std::span<const std::byte> bytes) {
  const std::lock_guard lock(parts_->deviceLock_);
  parts_->serial_->input(bytes);
  parts_->io_->wake();
}

void Machine::onVsockConnect(std::function<UniqueFd(std::uint32_t port)> connect) {
  parts_->vsockConnect_ = std::move(connect);
}

Machine::Metrics Machine::metrics() const {
  Metrics metrics = parts_->metrics_;
  metrics.exits = parts_->exits_;
  return metrics;
}

}  // namespace bough::vmm
