// Does KVM really run a guest here? A device node that opens proves little inside another virtual machine, so one vCPU
// executes one HLT. For the doctor. Source: Documentation/virt/kvm/api.rst of the kernel.
//
// The guest runs in a forked child: a KVM that hangs or kills its caller must not take the editor's helper with it.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <linux/kvm.h>
#endif

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "addon/errors.h"
#include "addon/functions.h"
#include "addon/owned_fd.h"

namespace bough::addon {
namespace {

constexpr int kDeadlineMs = 5000;

enum class Step : std::uint8_t { kOpen, kVersion, kVm, kMemory, kVcpu, kRun, kExit, kNoAnswer };

// What the child sends through the pipe; plain data, no pointers.
struct Report {
  Step failed_at = Step::kNoAnswer;
  bool runs = false;
  int api_version = -1;
  int error = 0;
  std::uint32_t exit_reason = 0;
};

const char* StepName(Step step) {
  switch (step) {
    case Step::kOpen:
      return "open /dev/kvm";
    case Step::kVersion:
      return "KVM_GET_API_VERSION";
    case Step::kVm:
      return "KVM_CREATE_VM";
    case Step::kMemory:
      return "KVM_SET_USER_MEMORY_REGION";
    case Step::kVcpu:
      return "KVM_CREATE_VCPU";
    case Step::kRun:
      return "KVM_RUN";
    case Step::kExit:
      return "the guest's HLT";
    case Step::kNoAnswer:
      return "the probe";
  }
  return "the probe";
}

#if defined(__x86_64__)
// Runs in the child: system calls only, no allocation, because other threads' locks may be held at the fork.
Report RunGuest() {
  Report report;
  const auto fail = [&report](Step step) {
    report.failed_at = step;
    report.error = errno;
    return report;
  };

  const OwnedFd kvm(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!kvm.valid()) return fail(Step::kOpen);
  report.api_version = ioctl(kvm.get(), KVM_GET_API_VERSION, 0);
  if (report.api_version < 0) return fail(Step::kVersion);
  const OwnedFd vm(ioctl(kvm.get(), KVM_CREATE_VM, 0));
  if (!vm.valid()) return fail(Step::kVm);

  // One page of guest memory at 0x1000, full of HLT.
  constexpr std::uint64_t kGuestAddress = 0x1000;
  constexpr std::size_t kPage = 4096;
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(Step::kMemory);
  std::memset(memory, 0xf4, kPage);
  kvm_userspace_memory_region region{};
  region.guest_phys_addr = kGuestAddress;
  region.memory_size = kPage;
  region.userspace_addr = reinterpret_cast<std::uintptr_t>(memory);
  if (ioctl(vm.get(), KVM_SET_USER_MEMORY_REGION, &region) != 0) return fail(Step::kMemory);

  const OwnedFd vcpu(ioctl(vm.get(), KVM_CREATE_VCPU, 0));
  if (!vcpu.valid()) return fail(Step::kVcpu);
  const int run_size = ioctl(kvm.get(), KVM_GET_VCPU_MMAP_SIZE, 0);
  if (run_size < static_cast<int>(sizeof(kvm_run))) return fail(Step::kVcpu);
  void* mapped = mmap(nullptr, static_cast<std::size_t>(run_size), PROT_READ | PROT_WRITE, MAP_SHARED, vcpu.get(), 0);
  if (mapped == MAP_FAILED) return fail(Step::kVcpu);
  const auto* run = static_cast<const kvm_run*>(mapped);

  // Real mode with CS at 0, so that IP is the address.
  kvm_sregs sregs{};
  if (ioctl(vcpu.get(), KVM_GET_SREGS, &sregs) != 0) return fail(Step::kVcpu);
  sregs.cs.base = 0;
  sregs.cs.selector = 0;
  if (ioctl(vcpu.get(), KVM_SET_SREGS, &sregs) != 0) return fail(Step::kVcpu);
  kvm_regs regs{};
  regs.rip = kGuestAddress;
  regs.rflags = 0x2;  // bit 1 is always set
  if (ioctl(vcpu.get(), KVM_SET_REGS, &regs) != 0) return fail(Step::kVcpu);

  int result = 0;
  do {
    result = ioctl(vcpu.get(), KVM_RUN, 0);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return fail(Step::kRun);
  report.exit_reason = run->exit_reason;
  if (run->exit_reason != KVM_EXIT_HLT) {
    errno = 0;
    return fail(Step::kExit);
  }
  report.runs = true;
  return report;  // The child ends now; the kernel takes its mappings.
}
#else
Report RunGuest() {
  Report report;
  const OwnedFd kvm(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  report.failed_at = kvm.valid() ? Step::kExit : Step::kOpen;
  report.error = kvm.valid() ? ENOSYS : errno;
  return report;
}
#endif

Report RunGuestInChild() {
  Report report;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    report.error = errno;
    return report;
  }
  const OwnedFd reader(ends[0]);
  OwnedFd writer(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    report.error = errno;
    return report;
  }
  if (child == 0) {
    const Report mine = RunGuest();
    const ssize_t written = write(writer.get(), &mine, sizeof mine);  // less than PIPE_BUF: whole or not at all
    _exit(written == static_cast<ssize_t>(sizeof mine) ? 0 : 1);
  }
  writer = OwnedFd();

  pollfd waiting{reader.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&waiting, 1, kDeadlineMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    report.error = ETIMEDOUT;
  } else if (Report read_back; read(reader.get(), &read_back, sizeof read_back) == sizeof read_back) {
    report = read_back;
  }
  kill(child, SIGKILL);  // Not reaped yet, so the number is still this child's.
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return report;
}

}  // namespace

Napi::Value ProbeKvm(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Report report = RunGuestInChild();
  Napi::Object result = Napi::Object::New(env);
  const bool open = report.runs || (report.failed_at != Step::kOpen && report.failed_at != Step::kNoAnswer);
  result.Set("open", Napi::Boolean::New(env, open));
  result.Set("apiVersion", report.api_version < 0 ? env.Null() : Napi::Number::New(env, report.api_version));
  result.Set("vcpuRuns", Napi::Boolean::New(env, report.runs));
  if (report.runs) {
    result.Set("error", env.Null());
  } else {
    std::string error = std::string(StepName(report.failed_at)) + " failed";
    if (report.error != 0) error += ": " + ErrnoName(report.error);
    if (report.failed_at == Step::kExit) error += " (exit reason " + std::to_string(report.exit_reason) + ")";
    result.Set("error", Napi::String::New(env, error));
  }
  return result;
}

}  // namespace bough::addon
