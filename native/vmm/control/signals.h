// SIGTERM, SIGINT and SIGHUP as something that the loop waits for. Used by main.cc (which blocks them before any thread
// starts) and Service.
#pragma once

#include <functional>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm {

class Signals {
 public:
  /// In this thread and those that it starts: only Signals gets them.
  static void block();

  Signals(EventLoop& loop, std::function<void()> stop) : loop_(loop), stop_(std::move(stop)) {}
  /// Starts to wait; again in a forked child, whose loop was restarted: a signalfd is made anew there.
  Result<Done> watch();

 private:
  EventLoop& loop_;
  std::function<void()> stop_;
  UniqueFd fd_;
};

}  // namespace bough::vmm
