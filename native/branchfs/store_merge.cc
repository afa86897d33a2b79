// See store_merge.h, and Store::prepare.
#include "native/branchfs/store_merge.h"

#include <shared_mutex>
#include <utility>

#include "native/branchfs/delta.h"
#include "native/branchfs/store.h"
#include "native/branchfs/touched.h"

namespace bough {
namespace {

constexpr std::size_t kCountAll = 2000;

ConflictSide sideOf(const NodePtr& node, const NodeCompare& compare) {
  if (!node) return {};
  return {node->kind, compare.size(*node), node->mode, node->kind == Kind::File && compare.binary(*node)};
}

}  // namespace

Conflict describe(const MergeConflict& conflict, const NodeCompare& compare) {
  return {conflict.path, conflict.reason, sideOf(conflict.base, compare), sideOf(conflict.ours, compare),
          sideOf(conflict.theirs, compare)};
}

Error conflictError(std::size_t count) {
  return Error{EBUSY, "E_CONFLICT",
               std::to_string(count) + (count == 1 ? " path was" : " paths were") +
                   " changed in the parent too, so nothing was done. Resolve each, or rebase the branch."};
}

std::uint64_t roughCount(const Nodes& point, const Nodes& tree) {
  if (tree.size() > kCountAll || point.size() > kCountAll) {
    // Counting would cost more than the commit: nodes that came or went.
    return tree.size() > point.size() ? tree.size() - point.size() : 1;
  }
  const Delta delta = deltaOf(point, tree);
  std::uint64_t count = 0;
  for (const EntryDelta& entry : delta.entries) count += entry.before != entry.after ? 1 : 0;
  for (const NodeDelta& node : delta.nodes) {
    count += node.before && node.after && node.after->kind != Kind::Directory &&
                     !(node.before->content == node.after->content)
                 ? 1
                 : 0;
  }
  return count;
}

Result<Prepared> Store::prepare(Sides sides, const Nodes& parent, const std::vector<std::string>& paths) {
  const NodeCompare compare(*base_, *objects_);
  Prepared result;
  result.point = std::move(sides.before);
  result.tree = std::move(sides.after);
  result.parent = parent;
  result.changes = changesBetween(result.point, result.tree, compare);
  BOUGH_ASSIGN(result.theirs, settled(parent, touchedPaths(result.point, result.tree, parent)));
  MergeInput input{result.point, result.tree, result.theirs, namesIn(result.theirs), nullptr, false};
  if (!paths.empty()) {
    result.selection = select(result.changes, paths);
    if (result.selection.shown == 0) {
      return Error{ENOENT, "E_NO_PATH", "The branch has changed nothing at " + paths.front() + "."};
    }
    input.only = &result.selection;
  }
  result.merged = merge(input, compare);
  return result;
}

std::function<std::vector<std::string>(const std::string&)> Store::namesIn(const Nodes& nodes) {
  // A view of nodes that are in no ledger: a branch that lends it a lock of its own.
  auto scratch = std::make_shared<Branch>();
  const std::shared_ptr<View> on = View::ofNodes(scratch, nodes, *base_, *objects_);
  return [on](const std::string& path) {
    std::vector<std::string> names;
    if (const auto items = on->listFolder(path)) {
      for (const DirItem& item : *items) {
        if (item.name != "." && item.name != "..") names.push_back(item.name);
      }
    }
    return names;
  };
}

Nodes Store::nodesOf(const BranchId& id) const {
  BranchPtr branch;
  {
    const std::lock_guard guard(lock_);
    branch = ledger_.find(id);
  }
  if (!branch) return {};
  const std::shared_lock hold(branch->lock);
  return branch->tree.nodes;
}

Result<std::vector<Conflict>> Store::conflicts(const BranchId& id, const std::vector<std::string>& paths) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  BranchId target;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(target, targetOf(*branch));
  }
  BOUGH_ASSIGN(const Prepared prepared, prepare(sidesOf(*branch), nodesOf(target), paths));
  const NodeCompare compare(*base_, *objects_);
  std::vector<Conflict> result;
  for (const MergeConflict& one : prepared.merged.conflicts) result.push_back(describe(one, compare));
  return result;
}

}  // namespace bough
