// What a machine is made of. Used by machine.cc (life), machine_fork.cc (becoming two) and machine_saved.cc (bytes)
// only.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "native/vmm/devices/bus.h"
#include "native/vmm/devices/reset_port.h"
#include "native/vmm/devices/serial.h"
#include "native/vmm/io/event_loop.h"
#include "native/vmm/kvm/kvm.h"
#include "native/vmm/kvm/vcpu.h"
#include "native/vmm/kvm/vm.h"
#include "native/vmm/machine/gate.h"
#include "native/vmm/machine/machine.h"
#include "native/vmm/machine/vcpu_thread.h"
#include "native/vmm/memory/guest_memory.h"
#include "native/vmm/virtio/console.h"
#include "native/vmm/virtio/device.h"
#include "native/vmm/virtio/mmio.h"
#include "native/vmm/virtio/vsock.h"

namespace bough::vmm {

/// Errors: E_VCPUS, E_FILE_SYSTEMS.
Result<Done> checkConfig(const MachineConfig& config);

class Machine::Parts {
 public:
  Parts(std::unique_ptr<Kvm> kvm, MachineConfig config, GuestMemory memory, EventLoop& control);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts();

  // Life (machine.cc).

  /// Devices on their buses, and the loop that serves them.
  Result<Done> makeDevices();
  Result<Done> attach(HostEnds ends);
  /// A VM of KVM with its vCPUs, reset.
  Result<Done> makeVm();
  Result<Done> startVcpus();
  void stopVcpus();
  Result<Done> pause(std::chrono::milliseconds timeout);
  Result<Done> resume();
  /// Parks the vCPUs. False at the deadline.
  bool park(std::chrono::steady_clock::time_point deadline);
  bool drain(std::chrono::steady_clock::time_point deadline);
  Result<Done> saveKvm();
  /// On the loop's thread: what vCPUs and host ends have for the devices.
  void serve();
  /// From any thread: the guest has ended.
  void ended(const std::string& why);

  // Becoming two (machine_fork.cc).

  Result<ForkOutcome> fork(std::vector<HostEnds> ends, const ForkOptions& options);
  /// In the child: makes this a machine of its own.
  Result<Done> becomeChild(HostEnds ends, const ForkOptions& options);
  /// A new VM of KVM, with the state that was saved.
  Result<Done> restoreKvm(bool sameBoot, bool verify);

  // Bytes (machine_saved.cc).

  std::string saveState() const;
  Result<Done> loadState(Decoder& in);
  std::uint32_t cpuDigest() const;

  class Line : public InterruptLine {
   public:
    Line(Parts& parts, std::uint32_t line) : parts_(parts), line_(line) {}
    void pulse() override {
      if (parts_.vm_) parts_.vm_->pulse(line_);
    }

   private:
    Parts& parts_;
    std::uint32_t line_;
  };

  struct Slot {
    std::unique_ptr<VirtioDevice> device;
    std::unique_ptr<Line> line;
    std::unique_ptr<VirtioMmio> transport;
  };

  std::unique_ptr<Kvm> kvm_;
  MachineConfig config_;
  GuestMemory memory_;
  EventLoop& control_;
  /// Watched by control_; apart from it, so that devices can be drained without serving anything else.
  std::unique_ptr<EventLoop> io_;

  std::mutex deviceLock_;
  Bus portBus_;
  Bus memoryBus_;
  std::unique_ptr<Line> serialLine_;
  std::unique_ptr<Serial> serial_;
  std::unique_ptr<ResetPort> reset_;
  std::vector<Slot> slots_;
  /// Two of the slots' devices, which have more to them than others.
  Console* console_ = nullptr;
  Vsock* vsock_ = nullptr;
  std::function<UniqueFd(std::uint32_t port)> vsockConnect_;

  std::optional<Vm> vm_;
  std::vector<Vcpu> vcpus_;
  Gate gate_;
  std::atomic<std::uint64_t> exits_ = 0;
  std::unique_ptr<VcpuContext> context_;
  std::vector<std::unique_ptr<VcpuThread>> threads_;
  std::vector<std::uint32_t> msrs_;

  /// What saveKvm() took; valid while paused or frozen.
  std::vector<VcpuState> vcpuStates_;
  VmState vmState_;

  MachineState state_ = MachineState::kPaused;
  std::mutex reasonLock_;
  std::string reason_;
  std::atomic<bool> ended_ = false;
  std::function<void()> onStopped_;
  std::chrono::steady_clock::time_point pauseStarted_;
  Metrics metrics_;
};

}  // namespace bough::vmm
