// See log.h.
#include "native/common/log.h"

#include <errno.h>
#include <unistd.h>

namespace bough {

void logLine(const std::string& message) {
  std::string line = std::string(program_invocation_short_name) + ": " + message + "\n";
  // Nobody is left to tell when stderr is gone.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace bough
