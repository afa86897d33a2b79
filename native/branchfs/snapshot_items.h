// The types of a snapshot's items (docs/store-format.md). Used by its writer and its reader.
#pragma once

#include <cstdint>

namespace bough {

inline constexpr std::uint64_t kSnapshotVersion = 2;  // version 1 is read, too

enum class SnapshotItem : std::uint8_t { Header = 1, EntriesTrie, Node, NodesTrie, Branch, Commit, Counters, End };

}  // namespace bough
