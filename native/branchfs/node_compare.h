// Whether two nodes are the same to a person: kind, data, mode, owner, xattrs, target; never times. Reads the data
// where numbers do not tell. Used by the diff, by merges and by commits into the base.
#pragma once

#include <cstdint>
#include <string>

#include "native/branchfs/base.h"
#include "native/branchfs/model.h"
#include "native/branchfs/objects.h"
#include "native/common/result.h"

namespace bough {

struct NodeDifference {
  bool content = false, mode = false, owner = false, xattr = false, target = false, type = false;
  bool any() const { return content || mode || owner || xattr || target || type; }
};

class NodeCompare {
 public:
  NodeCompare(const Base& base, Objects& objects) : base_(base), objects_(objects) {}

  /// Folders: only the folder itself, not what is in it.
  NodeDifference compare(const Node& a, const Node& b) const;
  bool sameContent(const Node& a, const Node& b) const;
  /// Bytes of a file; 0 for everything else.
  std::uint64_t size(const Node& node) const;
  /// Opens a file's data for reading.
  Result<SharedFd> open(const Node& node) const;
  /// The first `max` bytes, or all there are.
  Result<std::string> read(const Node& node, std::size_t max) const;
  /// As git sees it: a zero byte in the first 8000.
  bool binary(const Node& node) const;

 private:
  const Base& base_;
  Objects& objects_;
};

}  // namespace bough
