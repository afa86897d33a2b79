// What one client holds of a FileSystem: lookups and open handles. It is the check of every id and handle that the
// client sends back, and the list of what to give back when the client goes. Used by the dispatcher.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "native/branchfs/file_system.h"

namespace bough::fuse {

class Held {
 public:
  enum class What : std::uint8_t { File, Folder };

  void looked(NodeId id);
  /// Takes up to `n` lookups away; how many there were to take.
  std::uint64_t forget(NodeId id, std::uint64_t n);

  void opened(Handle handle, What what);
  bool holds(Handle handle, What what) const;
  /// False if the client did not hold it.
  bool closed(Handle handle, What what);

  /// Gives everything back.
  void releaseAll(FileSystem& fs);

 private:
  // Sharded, so that parallel requests rarely meet on one lock.
  static constexpr std::size_t kShards = 16;
  struct alignas(64) Shard {
    mutable std::mutex lock;
    std::unordered_map<NodeId, std::uint64_t> lookups;
    // Two sets: a file system may number files' and folders' handles apart.
    std::array<std::unordered_set<Handle>, 2> handles;
  };
  static std::size_t index(What what) { return static_cast<std::size_t>(what); }
  Shard& shard(std::uint64_t key) { return shards_[(key ^ (key >> 7)) % kShards]; }
  const Shard& shard(std::uint64_t key) const { return shards_[(key ^ (key >> 7)) % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace bough::fuse
