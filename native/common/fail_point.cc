// See fail_point.h.
#include "native/common/fail_point.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace bough {

namespace fail_point_detail {
bool armed = false;

namespace {
std::string failName;
std::atomic<long> passingsLeft{0};
int traceFd = -1;
}  // namespace

void pass(const char* name) {
  if (traceFd >= 0) {
    const std::string line = std::string(name) + "\n";
    // A test that reads a torn trace fails by itself; there is nobody to tell here.
    [[maybe_unused]] const ssize_t written = ::write(traceFd, line.data(), line.size());
  }
  if (failName != name) return;
  if (passingsLeft.fetch_sub(1) == 1) {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();  // other threads may still run for a moment; this one goes no step further
  }
}
}  // namespace fail_point_detail

void armFailPoints() {
  using namespace fail_point_detail;
  if (const char* at = std::getenv("BOUGH_FAIL_AT")) {
    failName = at;
    long count = 1;
    if (const auto colon = failName.rfind(':'); colon != std::string::npos) {
      count = std::strtol(failName.c_str() + colon + 1, nullptr, 10);
      failName.resize(colon);
    }
    passingsLeft = count > 0 ? count : 1;
  } else {
    failName.clear();
  }
  if (traceFd >= 0) ::close(traceFd);
  traceFd = -1;
  if (const char* path = std::getenv("BOUGH_FAIL_TRACE")) {
    traceFd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  armed = !failName.empty() || traceFd >= 0;
}

}  // namespace bough
