// Diffs, and trees as they look at some paths. See store.h.
#include <algorithm>
#include <utility>

#include "native/branchfs/changes.h"
#include "native/branchfs/store.h"
#include "native/branchfs/touched.h"

namespace bough {
namespace {

constexpr std::size_t kMaxSpread = 100000;

}  // namespace

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

Result<> Store::spread(Nodes& nodes, const Nodes& other) {
  const Names names(nodes);
  const auto list = namesIn(nodes);
  std::vector<std::string> paths, folders;
  nodes.forEach([&](NodeId id, const NodePtr& node) {
    if (!node->hasUnder || id == kRootNode || other.contains(id)) return;
    if (const auto path = names.path(id)) folders.push_back(*path);
  });
  while (!folders.empty() && paths.size() < kMaxSpread) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    for (const std::string& name : list(folder)) {
      paths.push_back(joined(folder, name));
      folders.push_back(paths.back());  // no folder: an empty list
    }
  }
  if (paths.empty()) return Done{};
  BOUGH_ASSIGN(nodes, settled(nodes, paths));
  return Done{};
}

Result<DiffPage> Store::diff(const BranchId& id, const BranchId& against, std::size_t from, std::size_t limit) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  const NodeCompare compare(*base_, *objects_);
  Sides sides = sidesOf(*branch);
  if (!against.empty()) {
    BOUGH_ASSIGN(const BranchPtr other, find(against));
    sides.before = sidesOf(*other).after;
    // What only one of them has met of the base looks like a difference until both have.
    const auto before = touchedPaths(sides.before, sides.after, sides.before);
    const auto after = touchedPaths(sides.before, sides.after, sides.after);
    BOUGH_ASSIGN(sides.before, settled(sides.before, before));
    BOUGH_ASSIGN(sides.after, settled(sides.after, after));
    BOUGH_TRY(spread(sides.before, sides.after));
    BOUGH_TRY(spread(sides.after, sides.before));
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
    std::set<NodeId> ours;
    for (const PathChange& change : changes) ours.insert(change.beforeId);
    sidesOf(branch).before.forEach([&](NodeId id, const NodePtr& node) {
      if (node->content.where != Content::Where::Base || node->content.base.root != 0 || ours.contains(id)) return;
      const auto now = base_->identityOf(node->content.base);
      if (!now || now->ino != node->identity.ino || now->size != node->identity.size ||
          now->mtime != node->identity.mtime) {
        drift.others++;
      }
    });
    for (const PathChange& change : changes) {
      if (change.implied || !change.before || !change.before->identity.known) continue;
      const std::string& path = change.was;
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
