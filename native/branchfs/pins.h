// What other branches get when a commit changes the base, so that nothing changes under anybody's feet: files that were
// replaced or removed go on from where the commit kept them, names that were added stay absent. Used by
// store_base_commit.cc and store_undo.cc.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/branchfs/model.h"
#include "native/branchfs/records.h"
#include "native/common/result.h"

namespace bough {

/// What a place of the base was before a commit.
struct Known {
  NodeId id = kNoNode;
  NodePtr node;
};
using KnownByPath = std::unordered_map<std::string, Known>;
/// From nodes in which the base is settled: what they know of it, by the base's own paths.
KnownByPath knownOf(const Nodes& settled);

/// One path of the base that a commit changed.
struct BaseMove {
  std::string path;
  std::uint32_t root = 0;  // where the old thing is kept; 0: there was nothing
  NodeId oldId = kNoNode;
  NodePtr old;  // it, with its data there
};

class Pins {
 public:
  /// `settle` gives nodes with the base as it is now settled at some paths.
  using Settle = std::function<Result<Nodes>(const Nodes& nodes, const std::vector<std::string>& paths)>;

  /// `known`: folders as they were: what a branch meets of them now would have the commit's times.
  Pins(std::vector<BaseMove> moves, KnownByPath known, Settle settle);

  /// The pin of a branch; its tree and point are changed together. `settles`: false for the branch that was committed,
  /// which sees what it changed anyway.
  Result<Pin> of(const std::string& owner, const Nodes& tree, const Nodes& point, bool settles);

 private:
  /// Data and folders that nodes have in a place of the base that has moved.
  std::vector<Mutation> repoint(const Nodes& nodes) const;
  bool moved(BaseRef& ref) const;
  Result<std::vector<Mutation>> shield(const Nodes& nodes);

  std::vector<BaseMove> moves_;
  KnownByPath known_;
  std::unordered_map<std::string, const BaseMove*> byPath_;
  Settle settle_;
  // Siblings that have changed nothing have one and the same tree: their pins are made once.
  Nodes lastTree_;
  std::vector<Mutation> lastShield_;
  bool hasLast_ = false;
};

}  // namespace bough
