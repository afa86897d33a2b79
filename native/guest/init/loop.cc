// See loop.h.
#include "native/guest/init/loop.h"

#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

namespace bough::guest {
namespace {

std::uint64_t nowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

}  // namespace

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Loop::Token Loop::watch(int fd, std::uint32_t events, Ready ready) {
  const Token token = nextToken_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  watches_.emplace(token, std::make_shared<Watch>(Watch{.fd = fd, .ready = std::move(ready)}));
  return token;
}

void Loop::change(Token token, std::uint32_t events) {
  const auto found = watches_.find(token);
  if (found == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, &event);
}

void Loop::unwatch(Token token) {
  const auto found = watches_.find(token);
  if (found == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
  watches_.erase(found);
}

Loop::Token Loop::after(std::uint64_t ms, std::function<void()> then) {
  const Token token = nextToken_++;
  timers_.emplace(token, Timer{.dueMs = nowMs() + ms, .then = std::move(then)});
  return token;
}

void Loop::cancel(Token timer) { timers_.erase(timer); }

void Loop::run() {
  std::array<epoll_event, 64> events{};
  while (!stopped_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), untilNextTimer());
    for (int i = 0; i < count; i++) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto found = watches_.find(event.data.u64);
      if (found == watches_.end()) continue;
      // Kept alive: the callback may unwatch itself.
      const std::shared_ptr<Watch> watch = found->second;
      watch->ready(event.events);
    }
    runTimers();
    runDeferred();
  }
}

int Loop::untilNextTimer() const {
  if (!deferred_.empty()) return 0;
  if (timers_.empty()) return -1;
  std::uint64_t due = UINT64_MAX;
  for (const auto& [token, timer] : timers_) due = std::min(due, timer.dueMs);
  const std::uint64_t now = nowMs();
  return due <= now ? 0 : static_cast<int>(std::min<std::uint64_t>(due - now, INT_MAX));
}

void Loop::runTimers() {
  if (timers_.empty()) return;
  const std::uint64_t now = nowMs();
  std::vector<std::function<void()>> due;
  for (auto timer = timers_.begin(); timer != timers_.end();) {
    if (timer->second.dueMs > now) {
      ++timer;
      continue;
    }
    due.push_back(std::move(timer->second.then));
    timer = timers_.erase(timer);
  }
  for (const auto& then : due) then();
}

void Loop::runDeferred() {
  while (!deferred_.empty()) {
    const auto now = std::exchange(deferred_, {});
    for (const auto& then : now) then();
  }
}

}  // namespace bough::guest
