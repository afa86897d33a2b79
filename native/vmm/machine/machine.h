// A microVM that can fork itself: RAM, vCPUs, devices, and the steps in which all of them become two. Used by the
// control server and main.cc. One process is one machine; see docs/fork.md.
//
// All of it is called on the loop's thread, which is the thread that forks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/common/codec.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/arch/x64/cpuid.h"
#include "native/vmm/io/event_loop.h"
#include "native/vmm/kvm/kvm.h"
#include "native/vmm/memory/guest_memory.h"
#include "native/vmm/virtio/device.h"

namespace bough::vmm {

struct MachineConfig {
  std::size_t ramBytes = std::size_t{256} << 20;
  unsigned vcpus = 1;
  bool hugePages = true;
  CpuProfile cpu = CpuProfile::kFull;
  /// Appended to by the machine with its devices' places.
  std::string commandLine;
  std::uint32_t vsockCid = 3;
  /// The tag of each virtio-fs device.
  std::vector<std::string> fileSystems;

  void encode(Encoder& out) const;
  static bool decode(Decoder& in, MachineConfig& config);
};

enum class MachineState {
  kRunning,
  /// vCPUs parked, devices quiet, KVM's state in this process's memory.
  kPaused,
  /// A checkpoint: paused for good, without a VM of KVM; it can only be forked, saved and ended.
  kFrozen,
  /// The guest has ended: reset, power-off, triple fault, or an error of KVM. See stopReason().
  kStopped,
};

using Microseconds = std::chrono::microseconds;

/// Where the time of the last pause went.
struct PauseTimes {
  Microseconds park{};
  Microseconds drain{};
  Microseconds save{};
  /// Of all children together.
  Microseconds fork{};
  Microseconds resume{};
  /// From the first kick until the vCPUs run again.
  Microseconds total{};
};

struct ForkOptions {
  /// Children stay frozen: checkpoints.
  bool freeze = false;
  /// Take the RAM out of KVM before fork(2) and put it back afterwards (measured in bench/vm; off: it is slower).
  bool dropMemslots = false;
  /// In each child, compare what KVM has with what it was given, and fail if it differs.
  bool verify = false;
};

struct ChildProcess {
  pid_t pid = 0;
  UniqueFd pidfd;
  /// Readable once the child has started or failed: one line, "ok" or "<code>: <message>", then end of file. End of
  /// file alone: the child was killed before it could tell.
  UniqueFd report;
};

struct ForkOutcome {
  /// Nothing in the parent; in a child its index, from 0.
  std::optional<unsigned> me;
  /// In the parent: the children, in order.
  std::vector<ChildProcess> children;
};

class Machine {
 public:
  /// Loads the kernel (an ELF file with a PVH entry) and starts the vCPUs. Errors: E_KERNEL, E_RAM_SIZE, E_NO_MEMORY,
  /// E_VCPUS, E_KVM_*.
  static Result<std::unique_ptr<Machine>> boot(std::unique_ptr<Kvm> kvm, MachineConfig config, int kernel,
                                               int initramfs, HostEnds ends, EventLoop& loop);
  /// From saved state: `memory` holds the RAM, `state` is what saveState() wrote. Does not run before resume(). Errors:
  /// E_SAVED_DAMAGED, E_SAVED_CPU (another CPU or KVM than the one it was saved on), E_KVM_*.
  static Result<std::unique_ptr<Machine>> load(std::unique_ptr<Kvm> kvm, GuestMemory memory, std::string_view state,
                                               HostEnds ends, EventLoop& loop);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  MachineState state() const;
  /// Why the guest ended; empty while it has not.
  std::string stopReason() const;
  /// Called on the loop's thread when the guest has ended.
  void onStopped(std::function<void()> handler);

  /// Parks the vCPUs, drains the devices, saves KVM's state. Errors: E_STATE, E_DRAIN (a device did not become quiet in
  /// `timeout`: the machine runs on).
  Result<Done> pause(std::chrono::milliseconds timeout = std::chrono::seconds(10));
  /// Errors: E_STATE.
  Result<Done> resume();

  /// Makes one child per entry of `ends`. Only while paused or frozen; the parent stays so. Returns once in the parent
  /// and once in each child. In a child, all of the parent's descriptors that belong to the machine are closed, the
  /// loop is restarted with the child's own ends, and the machine runs, or is frozen. A child that cannot build its
  /// machine says so in its report and ends. Errors, with no child left: E_STATE, E_FORK (fork(2) refused: no memory,
  /// too many processes).
  Result<ForkOutcome> fork(std::vector<HostEnds> ends, const ForkOptions& options);

  /// KVM's and the devices' state, for saved/. Only while paused or frozen.
  std::string saveState() const;
  const GuestMemory& memory() const;
  const MachineConfig& config() const;
  /// A digest of the CPU that the guest sees and of the MSRs that KVM keeps: what a saved state must find again.
  std::uint32_t cpuDigest() const;

  /// What the host's other end gives to the guest's first console.
  void consoleInput(std::span<const std::byte> bytes);
  /// How guest-initiated vsock connections reach the host: a connected stream socket for a port, or none to refuse.
  void onVsockConnect(std::function<UniqueFd(std::uint32_t port)> connect);

  struct Metrics {
    PauseTimes lastPause;
    std::uint64_t pauses = 0;
    std::uint64_t forks = 0;
    std::uint64_t exits = 0;
    /// In a child: from fork(2) until its vCPUs run.
    Microseconds childStart{};
    /// In a child: CLOCK_MONOTONIC in microseconds at which its vCPUs began to run.
    Microseconds runningSince{};
  };
  Metrics metrics() const;

 private:
  class Parts;
  explicit Machine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace bough::vmm
