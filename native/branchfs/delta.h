// What differs between two trees, as facts about ids: nodes and names. Costs as much as the difference, however large
// the trees are. changes.h makes paths of it for people, merge.h carries it over to another tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/branchfs/model.h"

namespace bough {

struct NodeDelta {
  NodeId id = 0;
  NodePtr before, after;  // null: not there
};
/// A name in a folder. Without a value: the tree does not say (what lies under shows, if anything); 0: a whiteout.
struct EntryDelta {
  NodeId dir = 0;
  std::string name;
  std::optional<NodeId> before, after;
};
struct Delta {
  std::vector<NodeDelta> nodes;
  std::vector<EntryDelta> entries;
  bool empty() const { return nodes.empty() && entries.empty(); }
};

Delta deltaOf(const Nodes& before, const Nodes& after);

/// Where the nodes of a tree have their names. Costs as much as the tree is large.
class Names {
 public:
  using Place = std::pair<NodeId, std::string>;  // folder, name

  explicit Names(const Nodes& nodes);
  /// All names of a node; none for the root.
  const std::vector<Place>& of(NodeId id) const;
  /// The path of a folder (or the first path of a file); without a value: not reachable.
  std::optional<std::string> path(NodeId id) const;
  std::optional<std::string> path(NodeId dir, std::string_view name) const;
  const Nodes& nodes() const { return nodes_; }

 private:
  Nodes nodes_;
  std::unordered_map<NodeId, std::vector<Place>> places_;
};

std::string joined(std::string_view folder, std::string_view name);
/// The node at a path as far as the tree itself says; the id 0: a whiteout; no value: the tree does not say.
std::optional<NodeId> walk(const Nodes& nodes, std::string_view path);
/// True when `path` is `folder` or below it ("" holds everything).
bool atOrBelow(std::string_view path, std::string_view folder);

}  // namespace bough
