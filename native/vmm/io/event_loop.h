// Waits for descriptors and calls who asked: the one thread of a machine that serves devices and control. Used by
// main.cc, the machine, the devices' host sides and the control server.
//
// Threads: runOnce(), restart() and onWake() belong to the I/O thread. The rest may be called from any thread: a
// driver's reset, on a vCPU's thread, takes a device's watches away.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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

  /// The machine's device lock. vCPU threads hold it around a device's registers, the machine around every call of a
  /// device; runOnce() takes it around the handlers of watchDevice(). Never held while runOnce() is called, nor while
  /// vCPU threads are waited for.
  std::mutex& deviceLock() { return deviceLock_; }

  /// Calls `handler` whenever one of `events` (EPOLLIN, EPOLLOUT; level-triggered) holds for `fd`, and for EPOLLHUP and
  /// EPOLLERR always. The caller keeps `fd` and takes the watch away before it closes it.
  Result<Done> watch(int fd, std::uint32_t events, Handler handler) {
    return add(fd, events, std::move(handler), false);
  }
  /// The same with the device lock held while `handler` runs; not called any more once unwatch() has returned to a
  /// caller that holds the lock.
  Result<Done> watchDevice(int fd, std::uint32_t events, Handler handler) {
    return add(fd, events, std::move(handler), true);
  }
  void change(int fd, std::uint32_t events);
  void unwatch(int fd);

  /// Called on the loop's thread after wake(), once for any number of calls, without the device lock.
  void onWake(std::function<void()> handler) { woken_ = std::move(handler); }
  /// From any thread and from a signal handler.
  void wake();

  /// Waits up to `timeoutMs` (-1: for ever) and calls the handlers of what is ready. A handler may change the watches,
  /// and may run the loop itself.
  void runOnce(int timeoutMs);

  /// Readable whenever runOnce(0) has something to do: a loop can be watched by another.
  int fd() const { return epoll_.get(); }

  /// In a forked child: epoll and eventfd are shared with the parent, so both are made anew, without any watch. Each
  /// owner of a watch watches its own new descriptor again.
  Result<Done> restart();

 private:
  struct Watch {
    Handler handler;
    bool device;
  };

  EventLoop() = default;
  Result<Done> open();
  Result<Done> add(int fd, std::uint32_t events, Handler handler, bool device);
  std::shared_ptr<Watch> find(int fd);
  void call(int fd, std::uint32_t events);

  std::mutex deviceLock_;
  UniqueFd epoll_;
  UniqueFd wake_;
  /// Counts restarts.
  unsigned generation_ = 0;
  std::function<void()> woken_;
  // Held for a look into the map only, never while a handler runs.
  std::mutex watchesLock_;
  // Shared, so that a handler that takes its own watch away does not destroy itself while it runs.
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;
};

}  // namespace bough::vmm
