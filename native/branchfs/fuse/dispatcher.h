// Turns FUSE requests into FileSystem calls and their results into answers: decode, call, encode. It knows nothing of
// where the bytes come from: the kernel's /dev/fuse (session.h) or a guest's virtio-fs queue. One Dispatcher serves one
// client of one FileSystem, from any number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "native/branchfs/file_system.h"
#include "native/branchfs/fuse/held.h"
#include "native/branchfs/fuse/protocol.h"

namespace bough::fuse {

struct Call;

class Dispatcher {
 public:
  explicit Dispatcher(FileSystem& fs) : fs_(fs) {}
  ~Dispatcher() { end(); }
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Handles one whole request (header and body) and writes the whole answer into `answer` (kAnswerBytes). The answer's
  /// length; 0 where the protocol has none (FORGET) or the bytes are no request at all.
  std::size_t handle(std::span<const std::byte> request, std::span<std::byte> answer);

  /// True once INIT was handled and the two sides agree on the protocol.
  bool agreed() const { return agreed_.load(std::memory_order_acquire); }

  /// The client is gone: closes its handles and forgets its lookups. No request may be in `handle`.
  void end() { held_.releaseAll(fs_); }

 private:
  int init(Call& call);

  FileSystem& fs_;
  Held held_;
  std::atomic<bool> agreed_{false};
};

}  // namespace bough::fuse
