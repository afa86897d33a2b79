// What this process has of the host's memory (proc(5), smaps_rollup). Used by the metrics method.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bough::vmm {

struct MemoryUse {
  std::uint64_t rssKiB = 0;
  /// Shared pages counted by their share.
  std::uint64_t pssKiB = 0;
  /// Changed pages that no other process has.
  std::uint64_t ownKiB = 0;
};

/// Nothing if a line is missing.
std::optional<MemoryUse> parseMemoryUse(std::string_view rollup);
/// `procFd`: a folder that is a /proc, or -1 for the path. Nothing where it cannot be read.
std::optional<MemoryUse> memoryUse(int procFd);

}  // namespace bough::vmm
