// What the tests ask of the host: which programs to test, processes and what they use. Used by Vm and the tests.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "native/common/unique_fd.h"

namespace bough::vmtest {

/// The boughvm under test: $BOUGHVM, or the one beside this program.
std::string boughvmPath();
/// A bare-metal guest by its name (test/vm/guests).
std::string guestPath(const std::string& name);
/// A file opened for reading; throws if it is not there.
UniqueFd openFile(const std::string& path);
/// A new, empty file without a name.
UniqueFd temporaryFile();
/// The same with these bytes.
UniqueFd fileOf(const std::string& bytes);
std::string readAll(int fd);

/// Whether this host runs guests by emulation, 10 to 30 times slower than hardware: tests do less of the same
/// ($BOUGH_VM_EMULATED=1, set by the suite).
bool emulated();
/// Whether boughvm is an AddressSanitizer build ($BOUGH_VM_ASAN=1): its memory says nothing then.
bool sanitized();

/// All processes below this one, however deep, zombies not counted. This process adopts those whose parents have ended.
std::vector<pid_t> processesBelow();
/// The same below another process.
std::vector<pid_t> processesBelow(pid_t root);
/// Waits until processesBelow() is empty; what is left, if anything is.
std::vector<pid_t> waitForNoProcess();
/// The process of a pidfd in this process's own PID namespace; none if it has ended.
std::optional<pid_t> processOf(int pidfd);

/// Descriptors of a process; none if this user may not look.
std::optional<std::vector<std::string>> descriptorsOf(pid_t pid);
/// A field of /proc/<pid>/smaps_rollup in KiB ("Pss", "Private_Dirty"); none if this user may not look.
std::optional<std::size_t> memoryKiB(pid_t pid, const std::string& field);
/// MemAvailable of the host.
std::size_t availableKiB();

}  // namespace bough::vmtest
