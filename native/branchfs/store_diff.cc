// Diffs, and trees as they look at some paths. See store.h.
#include <algorithm>
#include <utility>

#include "native/branchfs/changes.h"
#include "native/branchfs/store.h"

namespace bough {

Store::Sides Store::sidesOf(Branch& branch) {
  {
    const std::shared_lock hold(branch.lock);
    if (branch.adopted.empty()) return {branch.point, branch.tree.nodes};
  }
  const std::unique_lock hold(branch.lock);
  branch.foldAdopted();
  return {branch.point, branch.tree.nodes};
}

Result<Nodes> Store::settled(const Nodes& nodes, const std::vector<std::string>& paths) {
  auto scratch = std::make_shared<Branch>();
  scratch->id = "scratch";
  scratch->tree.nodes = nodes;
  scratch->point = nodes;
  scratch->log = &log_;
  View view(scratch, *base_, *objects_);
  const std::unique_lock hold(scratch->lock);
  BOUGH_ASSIGN(const Change change, view.settleChange(paths));
  apply(scratch->tree.nodes, change.settles);
  return scratch->tree.nodes;
}

Result<Nodes> Store::theirsOf(const Branch& branch, const std::vector<std::string>& paths) {
  Nodes nodes;
  BranchPtr parent;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(const BranchId target, targetOf(branch));
    parent = ledger_.find(target);
  }
  if (parent) {
    const std::shared_lock hold(parent->lock);
    nodes = parent->tree.nodes;
  }
  return settled(nodes, paths);
}

Result<DiffPage> Store::diff(const BranchId& id, const BranchId& against, std::size_t from, std::size_t limit) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  const NodeCompare compare(*base_, *objects_);
  Sides sides = sidesOf(*branch);
  if (!against.empty()) {
    BOUGH_ASSIGN(const BranchPtr other, find(against));
    sides.before = sidesOf(*other).after;
    // What only one of them has met of the base looks like a difference until both have.
    std::vector<std::string> paths;
    for (const PathChange& change : changesBetween(sides.before, sides.after, compare)) {
      paths.push_back(change.path);
      if (change.kind == ChangeKind::Renamed) paths.push_back(change.from);
    }
    BOUGH_ASSIGN(sides.before, settled(sides.before, paths));
    BOUGH_ASSIGN(sides.after, settled(sides.after, paths));
  }
  const std::vector<PathChange> changes = changesBetween(sides.before, sides.after, compare);
  DiffPage page;
  std::vector<FileChange> all;
  for (const PathChange& change : changes) {
    if (change.implied) continue;
    if (page.total >= from && page.changes.size() < limit) page.changes.push_back(describe(change, compare));
    page.total++;
  }
  if (against.empty()) page.drift = driftOf(*branch, changes);
  return page;
}

}  // namespace bough
