// What one client holds of a FileSystem; see held.h.
#include "native/branchfs/fuse/held.h"

#include <algorithm>
#include <utility>

namespace bough::fuse {

void Held::looked(NodeId id) {
  auto& s = shard(id);
  std::lock_guard guard(s.lock);
  ++s.lookups[id];
}

std::uint64_t Held::forget(NodeId id, std::uint64_t n) {
  auto& s = shard(id);
  std::lock_guard guard(s.lock);
  auto found = s.lookups.find(id);
  if (found == s.lookups.end()) return 0;
  const std::uint64_t taken = std::min(n, found->second);
  found->second -= taken;
  if (found->second == 0) s.lookups.erase(found);
  return taken;
}

void Held::opened(Handle handle, What what) {
  auto& s = shard(handle);
  std::lock_guard guard(s.lock);
  s.handles[index(what)].insert(handle);
}

bool Held::holds(Handle handle, What what) const {
  const auto& s = shard(handle);
  std::lock_guard guard(s.lock);
  return s.handles[index(what)].contains(handle);
}

bool Held::closed(Handle handle, What what) {
  auto& s = shard(handle);
  std::lock_guard guard(s.lock);
  return s.handles[index(what)].erase(handle) == 1;
}

void Held::releaseAll(FileSystem& fs) {
  // Handles first: a file that is open but unlinked goes when its last lookup goes.
  for (auto& s : shards_) {
    std::array<std::unordered_set<Handle>, 2> handles;
    {
      std::lock_guard guard(s.lock);
      handles.swap(s.handles);
    }
    for (Handle handle : handles[index(What::File)]) fs.release(handle);
    for (Handle handle : handles[index(What::Folder)]) fs.releasedir(handle);
  }
  for (auto& s : shards_) {
    std::unordered_map<NodeId, std::uint64_t> lookups;
    {
      std::lock_guard guard(s.lock);
      lookups.swap(s.lookups);
    }
    for (const auto& [id, n] : lookups) fs.forget(id, n);
  }
}

}  // namespace bough::fuse
