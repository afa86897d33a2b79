// The socket to a FUSE server: records sent straight from guest memory and received straight into it, never waiting.
// Used by the virtio-fs device (fs.h); the format is docs/fs-socket.md.
#pragma once

#include <linux/fuse.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "native/common/unique_fd.h"
#include "native/vmm/virtio/queue.h"

namespace bough::vmm::fs {

class Link {
 public:
  enum class Progress { kDone, kLater, kGone };

  Link();
  /// A connected stream socket; made non-blocking.
  void open(UniqueFd socket);
  void close();
  bool up() const { return socket_.get() >= 0; }
  int fd() const { return socket_.get(); }

  /// Sends `front`, then `body.size` bytes of a chain's readable part from `body.offset` on. `done` counts what has
  /// been sent of both; a later call goes on there.
  struct Body {
    const DescriptorChain* chain = nullptr;
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  Progress send(std::span<const std::byte> front, const Body& body, std::size_t& done);

  /// An answer's beginning: its length is right, `header.len` says the same, and what follows `header` has `left`
  /// bytes.
  struct Answer {
    fuse_out_header header{};
    std::size_t left = 0;
  };
  /// kGone also where the server does not keep to the format.
  Progress nextAnswer(Answer& answer);
  /// Moves up to `size` bytes of what follows into a chain's writable part; `done` counts them.
  Progress receiveInto(const DescriptorChain& chain, std::size_t offset, std::size_t size, std::size_t& done);
  /// The same, thrown away.
  Progress skip(std::size_t size, std::size_t& done);

 private:
  // Small answers come many at a time and whole; of a large one at most so much is copied.
  static constexpr std::size_t kStaged = std::size_t{16} << 10;

  std::span<const std::byte> staged() const { return {buffer_->data() + begin_, end_ - begin_}; }
  Progress stage();

  UniqueFd socket_;
  std::unique_ptr<std::array<std::byte, kStaged>> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::vector<iovec> scratch_;
};

}  // namespace bough::vmm::fs
