// See filter.h.
#include "native/vmm/jail/filter.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>

#include "native/vmm/kvm/kvm.h"

namespace bough::vmm {
namespace {

// --- The data
// -----------------------------------------------------------------------------------------------------------

/// With any arguments: they act on descriptors, memory and threads that this process has already.
constexpr std::array kAlways{
    // bytes in and out
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(preadv),
    SCMP_SYS(pwritev),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(close),
    SCMP_SYS(close_range),
    SCMP_SYS(dup),
    // sockets that were given, and their peers
    SCMP_SYS(accept4),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendto),
    SCMP_SYS(getsockopt),
    SCMP_SYS(shutdown),
    SCMP_SYS(pipe2),
    // waiting
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(eventfd2),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(signalfd4),
    SCMP_SYS(futex),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(sched_yield),
    SCMP_SYS(restart_syscall),
    // memory (mapping it is below)
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    // threads, forked machines and their ends
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(setsid),
    SCMP_SYS(wait4),
    SCMP_SYS(waitid),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(tgkill),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    // facts
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getrandom),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
};

/// `call`, where the bits `mask` of argument `argument` are `value`.
struct Conditional {
  int call;
  unsigned argument;
  scmp_datum_t mask;
  scmp_datum_t value;
};

constexpr scmp_datum_t kWord = 0xFFFF'FFFF;
constexpr scmp_datum_t kNewNamespace =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr std::array kConditional{
    // Memory is data: what a guest brings in cannot be run here.
    Conditional{SCMP_SYS(mmap), 2, PROT_EXEC, 0},
    Conditional{SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    // fork and threads, no new view of anything.
    Conditional{SCMP_SYS(clone), 0, kNewNamespace, 0},
    Conditional{SCMP_SYS(socketpair), 0, kWord, AF_UNIX},
    Conditional{SCMP_SYS(fcntl), 1, kWord, F_GETFL},
    Conditional{SCMP_SYS(fcntl), 1, kWord, F_SETFL},
    Conditional{SCMP_SYS(fcntl), 1, kWord, F_GETFD},
    Conditional{SCMP_SYS(fcntl), 1, kWord, F_SETFD},
    Conditional{SCMP_SYS(fcntl), 1, kWord, F_DUPFD_CLOEXEC},
    Conditional{SCMP_SYS(prctl), 0, kWord, PR_SET_NAME},
    // fstat as newer C libraries call it: of a descriptor, with an empty path.
    Conditional{SCMP_SYS(newfstatat), 3, kWord, 0x1000},
    // To end a child that is not wanted; nothing else can be sent by number.
    Conditional{SCMP_SYS(kill), 1, kWord, SIGKILL},
};

/// KVM's requests: what kvm/ makes of them, and no other device's.
constexpr std::array kRequests{
    static_cast<scmp_datum_t>(KVM_RUN),
    static_cast<scmp_datum_t>(KVM_IRQ_LINE),
    // the device
    static_cast<scmp_datum_t>(KVM_GET_API_VERSION),
    static_cast<scmp_datum_t>(KVM_CHECK_EXTENSION),
    static_cast<scmp_datum_t>(KVM_GET_VCPU_MMAP_SIZE),
    static_cast<scmp_datum_t>(kGetSupportedCpuid),
    static_cast<scmp_datum_t>(kGetMsrIndexList),
    static_cast<scmp_datum_t>(KVM_CREATE_VM),
    // a VM
    static_cast<scmp_datum_t>(KVM_SET_TSS_ADDR),
    static_cast<scmp_datum_t>(KVM_SET_IDENTITY_MAP_ADDR),
    static_cast<scmp_datum_t>(KVM_CREATE_IRQCHIP),
    static_cast<scmp_datum_t>(KVM_CREATE_PIT2),
    static_cast<scmp_datum_t>(KVM_CREATE_VCPU),
    static_cast<scmp_datum_t>(KVM_SET_USER_MEMORY_REGION),
    static_cast<scmp_datum_t>(KVM_GET_IRQCHIP),
    static_cast<scmp_datum_t>(KVM_SET_IRQCHIP),
    static_cast<scmp_datum_t>(KVM_GET_PIT2),
    static_cast<scmp_datum_t>(KVM_SET_PIT2),
    static_cast<scmp_datum_t>(KVM_GET_CLOCK),
    static_cast<scmp_datum_t>(KVM_SET_CLOCK),
    // a vCPU
    static_cast<scmp_datum_t>(kSetCpuid2),
    static_cast<scmp_datum_t>(KVM_GET_REGS),
    static_cast<scmp_datum_t>(KVM_SET_REGS),
    static_cast<scmp_datum_t>(KVM_GET_SREGS),
    static_cast<scmp_datum_t>(KVM_SET_SREGS),
    static_cast<scmp_datum_t>(kGetMsrs),
    static_cast<scmp_datum_t>(kSetMsrs),
    static_cast<scmp_datum_t>(KVM_GET_LAPIC),
    static_cast<scmp_datum_t>(KVM_SET_LAPIC),
    static_cast<scmp_datum_t>(KVM_GET_MP_STATE),
    static_cast<scmp_datum_t>(KVM_SET_MP_STATE),
    static_cast<scmp_datum_t>(KVM_GET_VCPU_EVENTS),
    static_cast<scmp_datum_t>(KVM_SET_VCPU_EVENTS),
    static_cast<scmp_datum_t>(KVM_GET_DEBUGREGS),
    static_cast<scmp_datum_t>(KVM_SET_DEBUGREGS),
    static_cast<scmp_datum_t>(kGetXsave),
    static_cast<scmp_datum_t>(kGetXsave2),
    static_cast<scmp_datum_t>(kSetXsave),
    static_cast<scmp_datum_t>(KVM_GET_XCRS),
    static_cast<scmp_datum_t>(KVM_SET_XCRS),
    static_cast<scmp_datum_t>(KVM_GET_TSC_KHZ),
    static_cast<scmp_datum_t>(KVM_SET_TSC_KHZ),
    static_cast<scmp_datum_t>(KVM_GET_DEVICE_ATTR),
    static_cast<scmp_datum_t>(KVM_SET_DEVICE_ATTR),
    static_cast<scmp_datum_t>(KVM_HAS_DEVICE_ATTR),
    static_cast<scmp_datum_t>(KVM_KVMCLOCK_CTRL),
};

/// What no path of this program and its libraries comes to: whoever calls it has taken the process over.
constexpr std::array kDeadly{
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsmount),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(modify_ldt),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(swapon),
    SCMP_SYS(reboot),
    SCMP_SYS(personality),
};

constexpr std::array kReaper{
    SCMP_SYS(read), SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigreturn), SCMP_SYS(exit), SCMP_SYS(exit_group),
};

// --- What is made of it
// -------------------------------------------------------------------------------------------------

struct Release {
  void operator()(scmp_filter_ctx context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

scmp_arg_cmp where(unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

/// libseccomp answers 0 or a negative errno; the first failure stays.
class Rules {
 public:
  explicit Rules(std::uint32_t otherwise) : context_(seccomp_init(otherwise)) {
    if (!context_) failed_ = ENOMEM;
    // A tree instead of a list: the cost of a call does not grow with the filter.
    else
      keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }
  void add(std::uint32_t action, int call) {
    if (failed_ == 0) keep(seccomp_rule_add(context_.get(), action, call, 0));
  }
  void add(std::uint32_t action, int call, std::initializer_list<scmp_arg_cmp> conditions) {
    if (failed_ == 0) {
      keep(seccomp_rule_add_array(context_.get(), action, call, static_cast<unsigned>(conditions.size()),
                                  conditions.begin()));
    }
  }
  int load() {
    if (failed_ == 0) keep(seccomp_load(context_.get()));
    return failed_;
  }

 private:
  void keep(int answer) {
    if (answer < 0 && failed_ == 0) failed_ = -answer;
  }
  Context context_;
  int failed_ = 0;
};

}  // namespace

int installFilter(int procFd) {
  Rules rules(SCMP_ACT_ERRNO(EPERM));
  for (const int call : kAlways) rules.add(SCMP_ACT_ALLOW, call);
  for (const Conditional& one : kConditional) {
    rules.add(SCMP_ACT_ALLOW, one.call, {where(one.argument, one.mask, one.value)});
  }
  for (const scmp_datum_t request : kRequests) {
    rules.add(SCMP_ACT_ALLOW, SCMP_SYS(ioctl), {where(1, kWord, request)});
  }
  if (procFd >= 0) {
    // Whatever the path, the root is empty and this folder has nothing but processes of the machine's own tree.
    rules.add(SCMP_ACT_ALLOW, SCMP_SYS(openat),
              {where(0, kWord, static_cast<scmp_datum_t>(procFd)), where(2, kWord, O_RDONLY | O_CLOEXEC)});
  }
  // Its flags lie in memory, where a filter cannot look; told that it is not there, the C library takes clone.
  rules.add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  for (const int call : kDeadly) rules.add(SCMP_ACT_KILL_PROCESS, call);
  return rules.load();
}

int installReaperFilter() {
  Rules rules(SCMP_ACT_ERRNO(EPERM));
  for (const int call : kReaper) rules.add(SCMP_ACT_ALLOW, call);
  for (const int call : kDeadly) rules.add(SCMP_ACT_KILL_PROCESS, call);
  return rules.load();
}

}  // namespace bough::vmm
