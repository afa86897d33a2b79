// How View gets at data it may write. Private to view_*.cc.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "native/branchfs/open_file.h"
#include "native/branchfs/view.h"

namespace bough {

/// `keep` of withOwnData and copyUp: all of the old data.
inline constexpr std::uint64_t kWholeFile = ~0ULL;

template <typename Work>
auto View::withOwnData(NodeId id, OpenFile* file, std::uint64_t keep, Work&& work) -> decltype(work(0)) {
  // Each round that does not end here was beaten by a branch point between its copy and its write.
  for (int attempt = 0; attempt < 1000; attempt++) {
    {
      std::shared_lock lock(branch_->lock);
      BOUGH_TRY(mayChange());
      Data data = dataOf(id);
      if (data.own) {
        SharedFd fd;
        if (file) {
          BOUGH_ASSIGN(fd, fdOf(*file, data));
        } else {
          BOUGH_ASSIGN(fd, objects_.get(data.content.object));
        }
        branch_->writes.fetch_add(1, std::memory_order_relaxed);
        return work(fd->get());
      }
    }
    BOUGH_TRY(copyUp(id, file, keep));
  }
  return sys(EAGAIN);
}

}  // namespace bough
