// See kvm.h. Requests and structures: the kernel's Documentation/virt/kvm/api.rst.
#include "native/vmm/kvm/kvm.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace bough::vmm {

int kvmIoctl(int fd, unsigned long request, const void* argument) {
  for (;;) {
    const int answer = ::ioctl(fd, request, argument);
    if (answer >= 0 || errno != EINTR) return answer;
  }
}

int kvmIoctl(int fd, unsigned long request, unsigned long argument) {
  for (;;) {
    const int answer = ::ioctl(fd, request, argument);
    if (answer >= 0 || errno != EINTR) return answer;
  }
}

namespace {

struct Need {
  int capability;
  const char* name;
};

// What every machine here uses. All are in every x86 KVM of the last ten years; the check is for hosts that have half a
// KVM.
constexpr std::array kNeeds{
    Need{KVM_CAP_USER_MEMORY, "user memory"},       Need{KVM_CAP_IRQCHIP, "in-kernel interrupt controller"},
    Need{KVM_CAP_PIT2, "in-kernel timer"},          Need{KVM_CAP_PIT_STATE2, "timer state"},
    Need{KVM_CAP_MP_STATE, "vCPU run state"},       Need{KVM_CAP_XSAVE, "extended registers"},
    Need{KVM_CAP_VCPU_EVENTS, "vCPU events"},       Need{KVM_CAP_DEBUGREGS, "debug registers"},
    Need{KVM_CAP_ADJUST_CLOCK, "adjustable clock"}, Need{KVM_CAP_EXT_CPUID, "CPUID control"},
    Need{KVM_CAP_IMMEDIATE_EXIT, "immediate exit"}, Need{KVM_CAP_SET_TSS_ADDR, "TSS address"},
};

Error unusable(const std::string& why) {
  return Error{ENOTSUP, "E_KVM_UNUSABLE",
               "this host's KVM cannot run a machine (" + why + "): use a newer kernel, or process mode"};
}

Error notOpened(int errnum) {
  if (errnum == EACCES || errnum == EPERM) {
    return Error{errnum, "E_KVM_DENIED",
                 "/dev/kvm may not be opened: add yourself to the group that owns it (usually kvm) and log in again"};
  }
  return Error{errnum, "E_KVM_MISSING",
               std::string("/dev/kvm cannot be opened (") + std::strerror(errnum) +
                   "): turn on virtualization in the firmware and load kvm_intel or kvm_amd; inside a virtual machine, "
                   "turn on nested virtualization; without it, use process mode"};
}

}  // namespace

Result<std::unique_ptr<Kvm>> Kvm::open() {
  std::unique_ptr<Kvm> kvm(new Kvm());
  kvm->fd_.reset(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!kvm->fd_) return notOpened(errno);
  const int fd = kvm->fd();
  if (const int version = kvmIoctl(fd, KVM_GET_API_VERSION); version != KVM_API_VERSION) {
    return unusable("its API version is " + std::to_string(version));
  }
  for (const Need& need : kNeeds) {
    if (kvmIoctl(fd, KVM_CHECK_EXTENSION, static_cast<unsigned long>(need.capability)) <= 0) {
      return unusable(std::string("it has no ") + need.name);
    }
  }
  const int runSize = kvmIoctl(fd, KVM_GET_VCPU_MMAP_SIZE);
  if (runSize < static_cast<int>(sizeof(kvm_run))) return unusable("its vCPU page is too small");
  kvm->runSize_ = static_cast<std::size_t>(runSize);
  if (const int size = kvmIoctl(fd, KVM_CHECK_EXTENSION, static_cast<unsigned long>(KVM_CAP_XSAVE2)); size > 0) {
    kvm->xsaveSize_ = static_cast<std::size_t>(size);
  }
  const int clock = kvmIoctl(fd, KVM_CHECK_EXTENSION, static_cast<unsigned long>(KVM_CAP_ADJUST_CLOCK));
  kvm->clockRealtime_ = (clock & KVM_CLOCK_REALTIME) != 0;

  KvmList<kvm_cpuid_entry2, 256> cpuid(256);
  if (kvmIoctl(fd, kGetSupportedCpuid, cpuid.argument()) < 0) return unusable("it does not tell its CPUID");
  kvm->cpuid_.assign(cpuid.entries().begin(), cpuid.entries().end());

  KvmList<std::uint32_t, 1024, 4> msrs(1024);
  if (kvmIoctl(fd, kGetMsrIndexList, msrs.argument()) < 0) return unusable("it does not list its registers (MSRs)");
  kvm->msrs_.assign(msrs.entries().begin(), msrs.entries().end());

  kvm->software_ = ::access("/sys/module/kvm_pvm", F_OK) == 0;
  return kvm;
}

Result<std::unique_ptr<Kvm>> Kvm::duplicate() const {
  std::unique_ptr<Kvm> kvm(new Kvm());
  kvm->fd_.reset(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3));
  if (!kvm->fd_) return sysError(errno, "the descriptor of /dev/kvm");
  kvm->runSize_ = runSize_;
  kvm->xsaveSize_ = xsaveSize_;
  kvm->cpuid_ = cpuid_;
  kvm->msrs_ = msrs_;
  kvm->clockRealtime_ = clockRealtime_;
  kvm->software_ = software_;
  return kvm;
}

}  // namespace bough::vmm
