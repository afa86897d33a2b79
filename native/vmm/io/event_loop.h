// Waits for descriptors and calls who asked. Used by main.cc and the control server (one loop), and by a machine and
// its devices' host sides (another one, which the first one watches, so that devices are drained without serving
// anything else).
//
// A machine's devices and its loop are touched with the machine's device lock held only: the machine holds it around
// runOnce(0), so a device's handler has it, and a driver's reset, on a vCPU's thread, may take watches away. wake()
// needs no lock.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::vmm {

class EventLoop {
 public:
  /// `events` as epoll_wait(2) gives them.
  using Handler = std::function<void(std::uint32_t events)>;

  /// Errors: those of epoll_create1(2) and eventfd(2). Makes this process ignore SIGPIPE: every descriptor here may
  /// lose its other side at any time, which its write tells.
  static Result<std::unique_ptr<EventLoop>> make();

  /// Readable when runOnce() has something to do: for poll(2), or for another loop's watch(). Another one after
  /// restart().
  int fd() const { return epoll_.get(); }

  /// Calls `handler` whenever one of `events` (EPOLLIN, EPOLLOUT; level-triggered) holds for `fd`, and for EPOLLHUP and
  /// EPOLLERR always. The caller keeps `fd` and takes the watch away before it closes it.
  Result<Done> watch(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void unwatch(int fd);

  /// Called on the loop's thread after wake(), once for any number of calls.
  void onWake(std::function<void()> handler) { woken_ = std::move(handler); }
  /// From any thread and from a signal handler.
  void wake();

  /// Waits up to `timeoutMs` (-1: for ever) and calls the handlers of what is ready. A handler may change the watches.
  void runOnce(int timeoutMs);

  /// In a forked child: epoll and eventfd are shared with the parent, so both are made anew, without any watch. Each
  /// owner of a watch watches its own new descriptor again.
  Result<Done> restart();

 private:
  EventLoop() = default;
  Result<Done> open();

  UniqueFd epoll_;
  UniqueFd wake_;
  /// Counts restarts.
  unsigned generation_ = 0;
  std::function<void()> woken_;
  // Shared, so that a handler that takes its own watch away does not destroy itself while it runs.
  std::unordered_map<int, std::shared_ptr<Handler>> handlers_;
};

}  // namespace bough::vmm
