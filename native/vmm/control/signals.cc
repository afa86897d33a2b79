// See signals.h.
#include "native/vmm/control/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace bough::vmm {
namespace {

sigset_t stops() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

}  // namespace

void Signals::block() {
  const sigset_t set = stops();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Result<Done> Signals::watch() {
  const sigset_t set = stops();
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) return sysError(errno, "signalfd");
  return loop_.watch(fd_.get(), EPOLLIN, [this](std::uint32_t) {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) == sizeof info) stop_();
  });
}

}  // namespace bough::vmm
