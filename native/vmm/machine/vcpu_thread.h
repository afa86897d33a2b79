// One vCPU's thread: runs the guest and answers its exits. Used by the machine.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "native/common/result.h"
#include "native/vmm/devices/bus.h"
#include "native/vmm/kvm/vcpu.h"
#include "native/vmm/machine/gate.h"

namespace bough::vmm {

/// What all vCPU threads of a machine share.
struct VcpuContext {
  Gate& gate;
  const Bus& ports;
  const Bus& memory;
  /// Held during every call of a device.
  std::mutex& deviceLock;
  /// The guest has ended, and why. Called once per vCPU that ends, on its thread.
  std::function<void(std::string why)> ended;
  std::atomic<std::uint64_t>& exits;
};

class VcpuThread {
 public:
  /// Installs the signal that kicks vCPUs out of the guest; once per process, before the first thread.
  static void installKick();

  VcpuThread(VcpuContext& context, Vcpu& vcpu, unsigned index) : context_(context), vcpu_(vcpu), index_(index) {}
  VcpuThread(const VcpuThread&) = delete;
  VcpuThread& operator=(const VcpuThread&) = delete;
  /// The thread must have ended, or be the parent's (in a forked child it does not exist).
  ~VcpuThread() = default;

  /// Errors: E_NO_THREAD.
  Result<Done> start();
  /// Makes the thread look at the gate soon.
  void kick();
  /// Ends the thread and waits for it; the gate must be open.
  void end();

 private:
  static void* enter(void* self);
  void loop();
  /// Finishes an exit that KVM still has half done: its registers are right only afterwards.
  void finishExit();
  /// False: this vCPU has ended.
  bool handleExit();
  bool stopped(const std::string& why);

  VcpuContext& context_;
  Vcpu& vcpu_;
  unsigned index_;
  pthread_t thread_{};
  std::atomic<bool> ending_ = false;
};

}  // namespace bough::vmm
