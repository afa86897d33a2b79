// The records between a virtio-fs device and its FUSE server (docs/fs-socket.md). Used by fs.cc, fs_link.cc and their
// tests; a server has its own definition.
#pragma once

#include <cstdint>

namespace bough::vmm::fs {

/// Before each request, to the server. Little endian.
struct RequestHead {
  std::uint32_t magic;
  /// Bytes of the FUSE request that follows.
  std::uint32_t size;
  /// The most bytes that the FUSE answer may have; 0 where no answer may come.
  std::uint32_t room;
  std::uint32_t reserved;
};
static_assert(sizeof(RequestHead) == 16);

/// Before each answer, from the server.
struct AnswerHead {
  std::uint32_t magic;
  /// Bytes of the FUSE answer that follows.
  std::uint32_t size;
};
static_assert(sizeof(AnswerHead) == 8);

constexpr std::uint32_t kRequestMagic = 0x31514642;  // "BFQ1"
constexpr std::uint32_t kAnswerMagic = 0x31414642;   // "BFA1"

}  // namespace bough::vmm::fs
