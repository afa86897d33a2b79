// See reaper.h.
#include "native/vmm/jail/reaper.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "native/vmm/jail/filter.h"
#include "native/vmm/jail/privileges.h"

namespace bough::vmm {

void reap(int living) {
  ::setsid();
  ::prctl(PR_SET_NAME, "boughvm-reaper");
  // Nothing of the machine stays here, not even its standard streams, whose other ends wait for their end.
  if (living > 0) ::syscall(SYS_close_range, 0U, static_cast<unsigned>(living) - 1, 0);
  ::syscall(SYS_close_range, static_cast<unsigned>(living) + 1, ~0U, 0);
  // Orphans come here; the kernel buries them itself when their end is ignored.
  ::signal(SIGCHLD, SIG_IGN);
  // A failure leaves a process that waits with more rights than it needs; machines are not concerned.
  if (dropPrivileges() == 0) installReaperFilter();
  char byte = 0;
  while (::read(living, &byte, 1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace bough::vmm
