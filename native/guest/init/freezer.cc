// See freezer.h.
#include "native/guest/init/freezer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace bough::guest {
namespace {

constexpr const char* kGroup = "/bough";
constexpr std::uint64_t kPatienceMs = 2000;

std::uint64_t nowUs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

Freezer::~Freezer() { loop_.unwatch(watch_); }

Result<Done> Freezer::open(const std::string& cgroupMount) {
  const std::string group = cgroupMount + kGroup;
  if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) return sysError(errno, group);
  UniqueFd procs(::open((group + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  UniqueFd freeze(::open((group + "/cgroup.freeze").c_str(), O_WRONLY | O_CLOEXEC));
  UniqueFd events(::open((group + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!procs || !freeze || !events) return sysError(errno, group);
  // The kernel tells of a change of cgroup.events as EPOLLPRI.
  watch_ = loop_.watch(events.get(), EPOLLPRI, [this](std::uint32_t) { settle(); });
  if (watch_ == 0) return sysError(EIO, group + "/cgroup.events cannot be watched");
  procs_ = std::move(procs);
  freeze_ = std::move(freeze);
  events_ = std::move(events);
  return Done{};
}

void Freezer::freeze(Hold hold, Frozen then) {
  if (!freeze_) {
    return then(Error{ENOSYS, "E_NO_CGROUP",
                      "Processes cannot be frozen: the guest has no cgroup v2 (see the problems in hello)."});
  }
  const std::uint64_t sinceUs = nowUs();
  held_[static_cast<std::size_t>(hold)] = true;
  if (auto written = write(true); !written) {
    held_[static_cast<std::size_t>(hold)] = false;
    return then(written.error());
  }
  Waiter waiter{.hold = hold, .sinceUs = sinceUs, .timer = 0, .then = std::move(then)};
  waiter.timer = loop_.after(kPatienceMs, [this, sinceUs] { late(sinceUs); });
  waiters_.push_back(std::move(waiter));
  settle();
}

Result<Done> Freezer::thaw(Hold hold) {
  held_[static_cast<std::size_t>(hold)] = false;
  if (isHeld() || !freeze_) return Done{};
  return write(false);
}

void Freezer::thawAll() {
  held_ = {};
  if (freeze_) static_cast<void>(write(false));
}

std::vector<std::string> Freezer::reasons() const {
  std::vector<std::string> out;
  if (isHeld(Hold::Host)) out.emplace_back("host");
  if (isHeld(Hold::Fork)) out.emplace_back("fork");
  return out;
}

Result<Done> Freezer::write(bool frozen) {
  if (::pwrite(freeze_.get(), frozen ? "1" : "0", 1, 0) == 1) return Done{};
  return Error{errno, "E_FREEZE", sysError(errno, "cgroup.freeze cannot be written").message};
}

bool Freezer::kernelSaysFrozen() const {
  std::array<char, 256> text{};
  const ssize_t n = ::pread(events_.get(), text.data(), text.size(), 0);
  return n > 0 && std::string_view(text.data(), static_cast<std::size_t>(n)).find("frozen 1") != std::string_view::npos;
}

void Freezer::settle() {
  // Also without a waiter: reading is what makes the kernel tell of the next change.
  if (!kernelSaysFrozen()) return;
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    loop_.cancel(waiter.timer);
    // Thawed in the meantime by another request: the promise does not hold any more.
    if (isHeld(waiter.hold)) {
      waiter.then(nowUs() - waiter.sinceUs);
    } else {
      waiter.then(Error{EINTR, "E_FREEZE", "The processes were thawed while they were being frozen."});
    }
  }
}

void Freezer::late(std::uint64_t sinceUs) {
  std::vector<Waiter> late;
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (waiter->sinceUs > sinceUs) {
      ++waiter;
      continue;
    }
    late.push_back(std::move(*waiter));
    waiter = waiters_.erase(waiter);
  }
  for (Waiter& waiter : late) {
    loop_.cancel(waiter.timer);
    static_cast<void>(thaw(waiter.hold));
    waiter.then(
        Error{ETIMEDOUT, "E_FREEZE",
              "Not all processes could be stopped within two seconds (one may wait for its file system); they go on. "
              "Try again."});
  }
}

}  // namespace bough::guest
