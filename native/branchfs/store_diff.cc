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

Drift Store::driftOf(Branch& branch, const std::vector<PathChange>& changes) {
  Drift drift;
  BranchId target = kBase;
  Nodes origin;
  {
    const std::lock_guard guard(lock_);
    if (const auto found = targetOf(branch)) target = *found;
    origin = branch.origin;
  }
  const NodeCompare compare(*base_, *objects_);
  if (target == kBase) {
    for (const PathChange& change : changes) {
      if (change.implied || !change.before || !change.before->identity.known) continue;
      const std::string& path = change.kind == ChangeKind::Renamed ? change.from : change.path;
      const auto now = base_->identityOf(BaseRef{0, path});
      const bool folder = change.before->kind == Kind::Directory;
      if (!now || now->ino != change.before->identity.ino || now->dev != change.before->identity.dev ||
          (!folder && !(*now == change.before->identity))) {
        drift.changed.push_back(path);
      }
    }
    return drift;
  }
  std::set<std::string> ours;
  for (const PathChange& change : changes) {
    if (!change.implied) ours.insert(change.path);
  }
  for (const PathChange& change : changesBetween(origin, nodesOf(target), compare)) {
    if (change.implied) continue;
    if (ours.contains(change.path)) {
      drift.changed.push_back(change.path);
    } else {
      drift.others++;
    }
  }
  return drift;
}

}  // namespace bough
