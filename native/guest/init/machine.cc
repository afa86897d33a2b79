// See machine.h.
#include "native/guest/init/machine.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace bough::guest {
namespace {

constexpr std::size_t kMostForRings = 128 << 20;
constexpr std::uint64_t kUsualGraceMs = 2000;
constexpr std::uint64_t kLastMs = 500;  // after SIGKILL: who is left then waits for a file system that does not answer

std::size_t ringBudget() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return kMostForRings;
  return std::min<std::size_t>(kMostForRings, info.totalram * info.mem_unit / 4);
}

}  // namespace

Machine::Machine(Boot boot, UniqueFd signals)
    : boot_(std::move(boot)), signals_(std::move(signals)), processes_(loop_, ringBudget()), freezer_(loop_) {
  if (auto opened = freezer_.open(kCgroupMount); !opened) {
    boot_.problem("E_NO_CGROUP",
                  "Processes cannot be frozen, and so the machine cannot be forked: " + opened.error().message + ".");
  }
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { onSignal(); });
}

void Machine::onSignal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGCHLD) shutDown(kUsualGraceMs);
  }
  // One SIGCHLD may stand for many.
  if (!processes_.collect() && ending_) loop_.stop();
}

void Machine::shutDown(std::uint64_t graceMs) {
  if (std::exchange(ending_, true)) return;
  freezer_.thawAll();  // a frozen process does not hear SIGTERM
  ::kill(-1, SIGTERM);
  loop_.after(graceMs, [this] {
    ::kill(-1, SIGKILL);
    loop_.after(kLastMs, [this] { loop_.stop(); });
  });
  if (!processes_.collect()) loop_.stop();
}

}  // namespace bough::guest
