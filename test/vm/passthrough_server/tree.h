// A folder of the host, read only, as FUSE sees it: nodes with numbers. Used by every session of the server, so that a
// forked guest's numbers mean the same on its own connection. Numbers are never taken back: the server lives as long as
// a test.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "native/common/unique_fd.h"

namespace passthrough {

using bough::UniqueFd;

/// FUSE_ROOT_ID is 1.
using NodeId = std::uint64_t;

struct Entry {
  std::string name;
  std::uint64_t inode = 0;
  /// As in struct dirent.
  unsigned char type = 0;
};

class Tree {
 public:
  explicit Tree(UniqueFd root) : root_(std::move(root)), paths_{{}, {}} {}

  // Each answers nothing or -1 with errno set, and ENOENT or ESTALE for a node that is none.

  std::optional<NodeId> lookup(NodeId parent, std::string_view name, struct stat& status);
  bool status(NodeId node, struct stat& status) const;
  std::optional<std::string> target(NodeId node) const;
  UniqueFd open(NodeId node, int flags) const;
  /// All of a folder, "." and ".." first, sorted.
  std::optional<std::vector<Entry>> list(NodeId node) const;

 private:
  std::optional<std::string> path(NodeId node) const;

  UniqueFd root_;
  mutable std::mutex lock_;
  /// By number, relative to the root; 0 is not used, 1 is the root.
  std::vector<std::string> paths_;
  std::unordered_map<std::string, NodeId> numbers_;
};

}  // namespace passthrough
