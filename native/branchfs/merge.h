// A three-way merge of trees by node and name: what a branch changed since its point, carried over to another state of
// its parent. Commits, rebases, reverts and takes are merges. A folder or file that the parent moved is followed by its
// id; one that was replaced there is followed by its name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "native/branchfs/change.h"
#include "native/branchfs/changes.h"
#include "native/branchfs/model.h"
#include "native/branchfs/node_compare.h"
#include "native/branchfs/store_types.h"

namespace bough {

struct MergeInput {
  const Nodes& point;   // what both come from
  const Nodes& tree;    // with the changes to carry over
  const Nodes& theirs;  // where to; everything that the changes touch has to be settled in it
  /// The names in a folder of `theirs`, also of what lies under it, by its path there. Asked only for folders that go.
  std::function<std::vector<std::string>(const std::string& path)> namesIn;
  const Selection* only = nullptr;  // null: all changes
  /// The changes lead back to `point`'s ancestor: a name that `tree` does not mention is to be unmentioned.
  bool backwards = false;
};

struct MergeConflict {
  std::string path;
  ConflictReason reason = ConflictReason::BothChanged;
  NodePtr base, ours, theirs;
};

struct Merge {
  std::vector<MergeConflict> conflicts;  // sorted by path, one for each
  std::vector<Mutation> edits;           // on top of `theirs`; of no use when there are conflicts
  Nodes result;                          // `theirs` with them
};

Merge merge(const MergeInput& input, const NodeCompare& compare);

}  // namespace bough
