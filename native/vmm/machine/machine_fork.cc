// A machine becomes two. The steps and the reasons for their order: docs/fork.md.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "native/vmm/machine/machine.h"
#include "native/vmm/machine/parts.h"

namespace bough::vmm {

namespace {

using Clock = std::chrono::steady_clock;

Microseconds since(Clock::time_point start) { return std::chrono::duration_cast<Microseconds>(Clock::now() - start); }

Error forkRefused(int errnum, const char* what) {
  return Error{errnum, "E_FORK",
               std::string("the host cannot fork the machine: ") + what + " (" + std::strerror(errnum) +
                   "): end a machine or raise the limit on memory or processes; the machine itself is unharmed"};
}

/// A child that is not wanted any more, because one of its siblings could not be made.
void endChild(const ChildProcess& child) {
  ::kill(child.pid, SIGKILL);
  while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void report(int fd, const std::string& line) {
  // The reader may be gone; then nobody wants to know.
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

}  // namespace

Result<ForkOutcome> Machine::Parts::fork(std::vector<HostEnds> ends, const ForkOptions& options) {
  if (state_ != MachineState::kPaused && state_ != MachineState::kFrozen) {
    return Error{EINVAL, "E_STATE", "only a machine that is paused or frozen can be forked"};
  }
  // Pipes before the fork: what can fail for want of descriptors fails while there is nothing to take back.
  struct Pipe {
    UniqueFd read;
    UniqueFd write;
  };
  std::vector<Pipe> pipes;
  for (std::size_t i = 0; i < ends.size(); i++) {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return forkRefused(errno, "no pipe");
    pipes.push_back({UniqueFd(fds[0]), UniqueFd(fds[1])});
  }
  const auto start = Clock::now();
  const bool drop = options.dropMemslots && vm_.has_value();
  if (drop) BOUGH_TRY(vm_->removeMemory(memory_));
  ForkOutcome outcome;
  int refused = 0;
  for (std::size_t i = 0; i < ends.size() && refused == 0; i++) {
    const auto forked = Clock::now();
    const pid_t pid = ::fork();
    if (pid == 0) {
      const UniqueFd out = std::move(pipes[i].write);
      pipes.clear();
      outcome.children.clear();
      HostEnds own = std::move(ends[i]);
      ends.clear();
      if (auto made = becomeChild(std::move(own), options); !made) {
        report(out.get(), made.error().code + ": " + made.error().message + "\n");
        ::_exit(1);
      }
      metrics_.childStart = since(forked);
      metrics_.runningSince = std::chrono::duration_cast<Microseconds>(Clock::now().time_since_epoch());
      report(out.get(), "ok\n");
      outcome.me = static_cast<unsigned>(i);
      return outcome;
    }
    if (pid < 0) {
      refused = errno;
      break;
    }
    ChildProcess child{pid, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), std::move(pipes[i].read)};
    if (!child.pidfd) refused = errno;
    outcome.children.push_back(std::move(child));
  }
  if (refused != 0) {
    for (const ChildProcess& child : outcome.children) endChild(child);
  }
  if (drop) BOUGH_TRY(vm_->addMemory(memory_));
  metrics_.lastPause.fork = since(start);
  if (refused != 0) return forkRefused(refused, "fork");
  metrics_.forks += outcome.children.size();
  return outcome;
}

Result<Done> Machine::Parts::becomeChild(HostEnds ends, const ForkOptions& options) {
  // A signal to the parent's group is not for this machine.
  ::setsid();
  // The parent's threads do not exist here, and its VM is bound to its address space: what is left of both is let go.
  for (auto& thread : threads_) thread.reset();
  threads_.clear();
  vcpus_.clear();
  vm_.reset();
  gate_.restart();
  exits_ = 0;
  metrics_ = {};

  BOUGH_TRY(control_.restart());
  BOUGH_TRY(io_->restart());
  BOUGH_TRY(control_.watch(io_->fd(), EPOLLIN, [this](std::uint32_t) { serve(); }));
  {
    const std::lock_guard lock(deviceLock_);
    serial_->becomeChild();
    for (const Slot& slot : slots_) slot.device->becomeChild();
  }
  BOUGH_TRY(attach(std::move(ends)));
  if (options.freeze) {
    state_ = MachineState::kFrozen;
    return Done{};
  }
  BOUGH_TRY(restoreKvm(true, options.verify));
  state_ = MachineState::kPaused;
  pauseStarted_ = Clock::now();
  return resume();
}

Result<Done> Machine::Parts::restoreKvm(bool sameBoot, bool verify) {
  BOUGH_TRY(makeVm());
  for (std::size_t i = 0; i < vcpus_.size(); i++) BOUGH_TRY(vcpus_[i].restore(vcpuStates_[i], sameBoot));
  BOUGH_TRY(vm_->restore(vmState_));
  if (verify) {
    for (std::size_t i = 0; i < vcpus_.size(); i++) {
      const std::string differences = vcpus_[i].differences(vcpuStates_[i], msrs_);
      if (!differences.empty()) {
        return Error{EIO, "E_KVM_STATE", "vCPU " + std::to_string(i) + " did not keep its state: " + differences};
      }
    }
  }
  return Done{};
}

}  // namespace bough::vmm
