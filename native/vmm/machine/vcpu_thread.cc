// See vcpu_thread.h.
#include "native/vmm/machine/vcpu_thread.h"

#include <signal.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace bough::vmm {

namespace {

constexpr int kKick = SIGUSR1;

/// The shared page of the vCPU that this thread runs. KVM_RUN leaves at once while its immediate_exit is set, so that a
/// signal that comes just before KVM_RUN is not lost.
thread_local kvm_run* runOfThisThread = nullptr;

void onKick(int /*signal*/) {
  if (runOfThisThread != nullptr) runOfThisThread->immediate_exit = 1;
}

/// KVM of some kernels answers ENOMEM once when a signal meets the first run of a VM.
constexpr int kMostRetries = 100;

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

void VcpuThread::installKick() {
  struct sigaction action{};
  action.sa_handler = onKick;
  sigemptyset(&action.sa_mask);
  // Without SA_RESTART: KVM_RUN has to come back.
  ::sigaction(kKick, &action, nullptr);
}

Result<Done> VcpuThread::start() {
  ending_ = false;
  // A new thread must not get signals that are meant for the loop's thread, but for the kick.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, kKick);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = ::pthread_create(&thread_, nullptr, enter, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) {
    return Error{failed, "E_NO_THREAD",
                 std::string("no thread could be started for a virtual CPU (") + std::strerror(failed) +
                     "): end another machine, or raise the limit on processes"};
  }
  return Done{};
}

void VcpuThread::kick() { ::pthread_kill(thread_, kKick); }

void VcpuThread::end() {
  ending_ = true;
  kick();
  ::pthread_join(thread_, nullptr);
}

void* VcpuThread::enter(void* self) {
  auto* thread = static_cast<VcpuThread*>(self);
  runOfThisThread = thread->vcpu_.run();
  thread->loop();
  runOfThisThread = nullptr;
  return nullptr;
}

void VcpuThread::loop() {
  int retries = 0;
  while (!ending_) {
    if (context_.gate.closed()) {
      finishExit();
      context_.gate.pass(index_);
      continue;
    }
    if (::ioctl(vcpu_.fd(), KVM_RUN, 0) == 0) {
      retries = 0;
      if (!handleExit()) break;
      continue;
    }
    vcpu_.run()->immediate_exit = 0;
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == ENOMEM && ++retries < kMostRetries) continue;
    stopped(std::string("KVM_RUN: ") + std::strerror(errno));
    break;
  }
  context_.gate.leave(index_);
}

void VcpuThread::finishExit() {
  for (;;) {
    vcpu_.run()->immediate_exit = 1;
    const int answer = ::ioctl(vcpu_.fd(), KVM_RUN, 0);
    const int error = errno;
    vcpu_.run()->immediate_exit = 0;
    // EINTR: all is done and the guest has not run on. An access in several parts asks again.
    if (answer != 0) {
      if (error == EINTR || error != EAGAIN) return;
    } else if (!handleExit()) {
      return;
    }
  }
}

bool VcpuThread::handleExit() {
  context_.exits.fetch_add(1, std::memory_order_relaxed);
  kvm_run& run = *vcpu_.run();
  switch (run.exit_reason) {
    case KVM_EXIT_IO: {
      // KVM puts the bytes into the same page, behind the structure.
      auto* data = reinterpret_cast<std::byte*>(&run) + run.io.data_offset;
      const std::lock_guard lock(context_.deviceLock);
      for (std::uint32_t i = 0; i < run.io.count; i++, data += run.io.size) {
        const std::span bytes(data, run.io.size);
        if (run.io.direction == KVM_EXIT_IO_OUT)
          context_.ports.write(run.io.port, bytes);
        else
          context_.ports.read(run.io.port, bytes);
      }
      return true;
    }
    case KVM_EXIT_MMIO: {
      const std::lock_guard lock(context_.deviceLock);
      const auto bytes = std::as_writable_bytes(std::span(run.mmio.data)).first(std::min<std::size_t>(run.mmio.len, 8));
      if (run.mmio.is_write != 0)
        context_.memory.write(run.mmio.phys_addr, bytes);
      else
        context_.memory.read(run.mmio.phys_addr, bytes);
      return true;
    }
    case KVM_EXIT_INTR:
    case KVM_EXIT_HLT:
    case KVM_EXIT_IRQ_WINDOW_OPEN:
      return true;
    case KVM_EXIT_SHUTDOWN:
      return stopped("triple fault");
    case KVM_EXIT_SYSTEM_EVENT:
      return stopped(run.system_event.type == KVM_SYSTEM_EVENT_RESET ? "reset" : "shutdown");
    case KVM_EXIT_INTERNAL_ERROR:
      return stopped("KVM could not go on (KVM_EXIT_INTERNAL_ERROR " + std::to_string(run.internal.suberror) +
                     "): an instruction that its emulator does not know, or a fault in a fault");
    case KVM_EXIT_FAIL_ENTRY:
      return stopped("the CPU refused the guest's state (" + hex(run.fail_entry.hardware_entry_failure_reason) + ")");
    default:
      return stopped("an exit that nobody asked for (" + std::to_string(run.exit_reason) + ")");
  }
}

bool VcpuThread::stopped(const std::string& why) {
  context_.ended("vCPU " + std::to_string(index_) + ": " + why);
  return false;
}

}  // namespace bough::vmm
