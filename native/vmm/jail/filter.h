// The system calls of a machine's process and of what it forks: seccomp(2), by libseccomp. Used by jail.cc and
// reaper.cc.
#pragma once

namespace bough::vmm {

/// From here on: what is on the list works, what only an attack would call ends the process (SIGSYS), the rest fails
/// with EPERM. `procFd`: the /proc in which `self/smaps_rollup` may be opened, or -1. Answers 0 or an errno.
int installFilter(int procFd);

/// Of a process that waits and ends.
int installReaperFilter();

}  // namespace bough::vmm
