// A difference of trees as what a commit into the base has to do: items for commit/. Used by store_base_commit.cc.
#pragma once

#include <string>
#include <vector>

#include "native/branchfs/base.h"
#include "native/branchfs/changes.h"
#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/node_compare.h"
#include "native/branchfs/view.h"
#include "native/common/result.h"

namespace bough {

class BaseItems {
 public:
  /// `result`: a view of the base as it shall become. All outlive the items, which read their data later.
  BaseItems(View& result, const Base& base, Objects& objects) : result_(result), base_(base), compare_(base, objects) {}

  /// `before`: the base as it is now, settled at all paths concerned, with identities. `changes`: from it to the
  /// result.
  Result<std::vector<Item>> from(const Nodes& before, const std::vector<PathChange>& changes);
  /// A folder goes: before it does, somebody has to look whether all that is in it may go.
  bool removesFolders() const { return removesFolders_; }

 private:
  Result<NewNode> make(const std::string& path);
  Result<Expect> expect(const std::string& path, const NodePtr& before, bool stays);
  static Item folderMeta(const PathChange& change, Expect expected);
  bool untouched(const AtPath& at) const;

  View& result_;
  const Base& base_;
  NodeCompare compare_;
  bool removesFolders_ = false;
};

}  // namespace bough
