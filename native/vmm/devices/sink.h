// Takes what a guest writes to a console and gives it to a file, pipe, socket or terminal, without ever making the
// guest wait: what a slow reader does not take is kept up to a bound, beyond that it is lost, and the output says so.
// Used by serial.h and virtio/console.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm {

class Sink {
 public:
  static constexpr std::size_t kMostKept = std::size_t{64} << 10;

  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() { close(); }

  /// Empty: what is written is thrown away. Makes the descriptor non-blocking.
  Result<Done> attach(UniqueFd out, EventLoop& loop);
  /// In a forked child, after the loop was restarted: what is kept is the parent's to write.
  void becomeChild();

  void write(std::span<const std::byte> bytes);

 private:
  void flush();
  void wait(bool forRoom);
  void close();

  UniqueFd out_;
  EventLoop* loop_ = nullptr;
  /// False for a regular file: it always has room, and epoll does not take it.
  bool watched_ = false;
  bool waiting_ = false;
  std::string kept_;
  std::size_t lost_ = 0;
};

}  // namespace bough::vmm
