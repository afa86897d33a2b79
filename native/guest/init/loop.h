// The one thread of bough-init: waits with epoll(7) and calls who watches. Used by everything that holds a descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "native/common/unique_fd.h"

namespace bough::guest {

class Loop {
 public:
  using Token = std::uint64_t;  // never used twice, so a late event finds nobody
  using Ready = std::function<void(std::uint32_t events)>;

  Loop();

  /// Calls `ready` while the descriptor has one of the events (EPOLLIN, …). The caller keeps the descriptor open until
  /// it has called `unwatch`. 0: epoll refused.
  Token watch(int fd, std::uint32_t events, Ready ready);
  void change(Token token, std::uint32_t events);
  void unwatch(Token token);

  /// Calls once, after that many milliseconds.
  Token after(std::uint64_t ms, std::function<void()> then);
  void cancel(Token timer);

  /// Calls after all events that are at hand: for what must not happen inside of its own callback.
  void defer(std::function<void()> then) { deferred_.push_back(std::move(then)); }

  void run();
  void stop() { stopped_ = true; }

 private:
  struct Watch {
    int fd;
    Ready ready;
  };
  struct Timer {
    std::uint64_t dueMs;
    std::function<void()> then;
  };

  int untilNextTimer() const;
  void runTimers();
  void runDeferred();

  UniqueFd epoll_;
  Token nextToken_ = 1;
  std::unordered_map<Token, std::shared_ptr<Watch>> watches_;
  std::map<Token, Timer> timers_;
  std::vector<std::function<void()>> deferred_;
  bool stopped_ = false;
};

}  // namespace bough::guest
