// A change of a tree: what one file operation does, applied and logged as one. View operations build it; Branch applies
// it; the log writes it as one record; recovery applies it again.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "native/branchfs/model.h"

namespace bough {

/// Puts a node (a folder keeps the entries that the tree already has for it, unless `withEntries`).
struct PutNode {
  NodeId id;
  NodePtr node;
  bool withEntries = false;
};
struct DropNode {
  NodeId id;
};
/// Names `child` in `dir` (kNoNode: a whiteout). The folder's times come with a PutNode of their own.
struct PutEntry {
  NodeId dir;
  std::string name;
  NodeId child;
};
/// Takes a name out of `entries`: what lies under the folder shows again.
struct DropEntry {
  NodeId dir;
  std::string name;
};
using Mutation = std::variant<PutNode, DropNode, PutEntry, DropEntry>;

/// `settles` are facts about the base that the branch meets for the first time (a folder on the way to a change, a file
/// as it was before its first change). They are no change of the branch: they go into its tree and its point alike.
/// `edits` are what the branch changes: they go into the tree only.
struct Change {
  std::vector<Mutation> settles;
  std::vector<Mutation> edits;
  bool empty() const { return settles.empty() && edits.empty(); }
};

/// What turns the nodes `from` into `to`. Costs as much as they differ.
std::vector<Mutation> difference(const Nodes& from, const Nodes& to);

/// Applies mutations to a map of nodes. Total: a mutation of a folder that is not there is skipped.
void apply(Nodes& nodes, const std::vector<Mutation>& mutations);

}  // namespace bough
