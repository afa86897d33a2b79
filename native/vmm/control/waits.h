// Two things that a request may have to wait for without holding up the loop: what another process writes into a pipe
// until it closes it, and time. Used by the jobs of Service. In a forked child both are just destroyed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm {

/// Everything that comes through a pipe, at its end. What is beyond 64 KiB is dropped.
class PipeText {
 public:
  /// `done` may destroy this object.
  static Result<std::unique_ptr<PipeText>> read(EventLoop& loop, UniqueFd pipe, std::function<void(std::string)> done);
  ~PipeText();
  PipeText(const PipeText&) = delete;
  PipeText& operator=(const PipeText&) = delete;

 private:
  PipeText(EventLoop& loop, UniqueFd pipe, std::function<void(std::string)> done)
      : loop_(loop), pipe_(std::move(pipe)), done_(std::move(done)) {}
  void ready();

  EventLoop& loop_;
  UniqueFd pipe_;
  std::string text_;
  std::function<void(std::string)> done_;
};

/// Calls once, after a time.
class Alarm {
 public:
  /// `ring` may destroy this object.
  static Result<std::unique_ptr<Alarm>> in(EventLoop& loop, std::chrono::seconds time, std::function<void()> ring);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  Alarm(EventLoop& loop, UniqueFd timer) : loop_(loop), timer_(std::move(timer)) {}
  EventLoop& loop_;
  UniqueFd timer_;
};

/// A pipe, both ends close-on-exec.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
  static Result<Pipe> make();
};

}  // namespace bough::vmm
