// See privileges.h. Capabilities: capabilities(7).
#include "native/vmm/jail/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace bough::vmm {
namespace {

constexpr rlim_t kDescriptors = 4096;

void limit(__rlimit_resource which, rlim_t value) {
  rlimit now{};
  if (::getrlimit(which, &now) != 0) return;
  const rlim_t allowed = now.rlim_max == RLIM_INFINITY ? value : std::min(value, now.rlim_max);
  const rlimit wanted{allowed, allowed};
  ::setrlimit(which, &wanted);
}

}  // namespace

void limitResources() {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_MEMLOCK, 0);
  limit(RLIMIT_MSGQUEUE, 0);
  limit(RLIMIT_NOFILE, kDescriptors);
}

int dropPrivileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  // EINVAL ends the list of capabilities that this kernel knows; EPERM: without CAP_SETPCAP the set below is what
  // counts.
  for (int capability = 0; capability < 64; capability++) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none{};
  if (::syscall(SYS_capset, &head, none.data()) != 0) return errno;
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  return 0;
}

void forgetEnvironment() {
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; entry++) {
    ::explicit_bzero(*entry, std::strlen(*entry));
  }
  ::clearenv();
}

}  // namespace bough::vmm
