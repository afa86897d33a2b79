// A change of a branch while an operation of View puts it together: what it settles, which nodes it edits, which names
// it changes. Lives under the branch's exclusive lock; nothing happens before commit().
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/branchfs/view.h"

namespace bough {

/// The present, as file times have it (the clock that the kernel uses for its own files).
Time presentTime();

/// What the base has at `ref`, as a node with the base's data.
Result<NodePtr> nodeFromBase(const Base& base, const BaseRef& ref, const BaseStat& stat);

class Draft {
 public:
  explicit Draft(View& view) : view_(view) {}

  /// Settles a node that the transport knows, with the folders that lead there.
  Result<> settle(NodeId id);
  /// Settles a node that was found as `place`, whose folder is in the tree or settled in this draft already.
  Result<> settleAt(const View::Place& place, const View::Found& found);
  /// Settles that nothing has this name.
  void settleAbsent(NodeId folder, std::string_view name);
  /// Gives the point's node of a settled base file a frozen copy of its data, if the point still reads them in the
  /// base.
  void keepPristine(NodeId id, const Content& copy, const BaseStat& stat);

  /// The node as it will be; null if it neither is in the tree nor settled here.
  const Node* now(NodeId id) const;
  /// A node to change; it is in the tree or settled here. Asked twice it gives the same one.
  Node& edit(NodeId id);
  /// A node that the tree does not have yet.
  void add(NodeId id, NodePtr node);
  void drop(NodeId id);
  void name(NodeId folder, std::string_view name, NodeId child);
  void unname(NodeId folder, std::string_view name, bool whiteout);
  /// Marks a folder as changed now.
  Node& touch(NodeId folder);

  Change take();
  Result<> commit();

 private:
  View& view_;
  std::vector<Mutation> settles_;
  std::unordered_map<NodeId, NodePtr> settled_;
  std::vector<std::pair<NodeId, std::shared_ptr<Node>>> edited_;
  std::vector<Mutation> added_, names_, dropped_;
};

}  // namespace bough
