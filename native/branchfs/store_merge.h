// What a commit, a rebase or a look at conflicts has to know first: the branch's changes and how they fit its parent as
// it is now. Used inside Store.
#pragma once

#include <string>
#include <vector>

#include "native/branchfs/changes.h"
#include "native/branchfs/merge.h"
#include "native/branchfs/model.h"
#include "native/branchfs/store_types.h"

namespace bough {

struct Prepared {
  Nodes point, tree;  // of the branch
  Nodes parent;       // the parent's nodes as they are now; empty for the base
  Nodes theirs;       // `parent`, with everything settled that the changes touch
  std::vector<PathChange> changes;
  Selection selection;  // when only some paths are wanted
  Merge merged;
};

Conflict describe(const MergeConflict& conflict, const NodeCompare& compare);
Error conflictError(std::size_t count);
/// Names and nodes that differ, as a number of paths, without reading any data.
std::uint64_t roughCount(const Nodes& point, const Nodes& tree);

}  // namespace bough
