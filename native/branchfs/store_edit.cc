// Changing a branch by path from outside: revert, take, resolve. See store.h.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "native/branchfs/store.h"
#include "native/branchfs/store_merge.h"
#include "native/common/fail_point.h"

namespace bough {
namespace {

constexpr int kTries = 20;

Error keepsChanging(const BranchId& id) {
  return Error{EBUSY, "E_STATE", "Branch " + id + " keeps changing. Pause its agent and try again."};
}

/// What of `to` differs from `from` at some paths, as edits of `from`.
Result<std::vector<Mutation>> editsAt(const Nodes& from, const Nodes& to, const std::vector<std::string>& paths,
                                      bool backwards, const NodeCompare& compare, std::uint64_t& count) {
  const Selection selection = select(changesBetween(from, to, compare), paths);
  count = selection.shown;
  const MergeInput input{from, to, from, nullptr, &selection, backwards};
  Merge merged = merge(input, compare);
  if (!merged.conflicts.empty()) {
    return Error{EBUSY, "E_CONFLICT",
                 merged.conflicts.front().path + " cannot be changed by itself: take the folder it is in as well."};
  }
  return std::move(merged.edits);
}

}  // namespace

Result<> Store::edit(const BranchPtr& branch, const std::function<Result<Change>(const Sides&)>& make) {
  for (int attempt = 0; attempt < kTries; attempt++) {
    const Sides sides = sidesOf(*branch);
    BOUGH_ASSIGN(const Change change, make(sides));
    {
      const std::lock_guard guard(lock_);
      BOUGH_TRY(branchOf(branch->id));
      BOUGH_TRY(mustBeLive(*branch));
      const std::unique_lock hold(branch->lock);
      if (!branch->tree.nodes.sameAs(sides.after) || !branch->point.sameAs(sides.before)) continue;
      failPoint("store.edit.begin");
      BOUGH_TRY(branch->commit(change));
      failPoint("store.edit.logged");
      if (const auto view = views_.find(branch->id); view != views_.end()) view->second->treeReplaced(sides.after);
    }
    showReplaced(branch, sides.after);
    return Done{};
  }
  return keepsChanging(branch->id);
}

Result<std::uint64_t> Store::revert(const BranchId& id, const std::vector<std::string>& paths) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  const NodeCompare compare(*base_, *objects_);
  std::uint64_t count = 0;
  BOUGH_TRY(edit(branch, [&](const Sides& sides) -> Result<Change> {
    BOUGH_ASSIGN(auto edits, editsAt(sides.after, sides.before, paths, true, compare, count));
    if (count == 0) return Error{ENOENT, "E_NO_PATH", "The branch has changed nothing at " + paths.front() + "."};
    return Change{{}, std::move(edits)};
  }));
  return count;
}

Result<std::uint64_t> Store::take(const BranchId& id, const BranchId& from, const std::vector<std::string>& paths) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  BOUGH_ASSIGN(const BranchPtr other, find(from));
  const NodeCompare compare(*base_, *objects_);
  Nodes source;
  {
    // Its objects are shared from here on: it writes on into copies.
    const std::lock_guard guard(lock_);
    const std::unique_lock hold(other->lock);
    BOUGH_TRY(record(PointMoved{from, {}, {}, log_.newEpoch()}));
    source = other->tree.nodes;
  }
  std::uint64_t count = 0;
  BOUGH_TRY(edit(branch, [&](const Sides& sides) -> Result<Change> {
    // Both have to say what they have at those paths, and at what differs below them.
    std::vector<std::string> all = paths;
    for (const PathChange& change : changesBetween(sides.after, source, compare)) {
      const bool wanted = std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
        return atOrBelow(change.path, path) || (!change.from.empty() && atOrBelow(change.from, path));
      });
      if (!wanted) continue;
      all.push_back(change.path);
      if (!change.from.empty()) all.push_back(change.from);
    }
    BOUGH_ASSIGN(const Nodes ours, settled(sides.after, all));
    BOUGH_ASSIGN(const Nodes theirs, settled(source, all));
    BOUGH_ASSIGN(auto edits, editsAt(ours, theirs, paths, true, compare, count));
    return Change{difference(sides.after, ours), std::move(edits)};
  }));
  return count;
}

Result<> Store::resolve(const BranchId& id, const std::string& path, Take how, const std::string& data,
                        std::optional<std::uint32_t> mode) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  if (branch->state == BranchState::Committed) return mustBeLive(*branch).error();
  if (how == Take::Content) {
    BOUGH_ASSIGN(const auto on, view(id));
    BOUGH_TRY(on->writeFile(Caller{::geteuid(), ::getegid(), 0}, path, data));
    if (mode) {
      BOUGH_ASSIGN(const AtPath at, on->resolve(path));
      SetAttr set;
      set.mode = *mode;
      BOUGH_TRY(on->setattr(Caller{::geteuid(), ::getegid(), 0}, at.attr.id, std::nullopt, set));
    }
  }
  const NodeCompare compare(*base_, *objects_);
  for (int attempt = 0; attempt < kTries; attempt++) {
    BranchId target;
    {
      const std::lock_guard guard(lock_);
      BOUGH_ASSIGN(target, targetOf(*branch));
    }
    const Sides sides = sidesOf(*branch);
    BOUGH_ASSIGN(const Nodes theirs, settled(nodesOf(target), {path}));
    // Where the parent has no folder for it any more, the whole folder is what has to be agreed on.
    std::string at = path;
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const std::string above = path.substr(0, slash);
      if (walk(theirs, above).value_or(kRootNode) == kNoNode) {
        at = above;
        break;
      }
    }
    std::uint64_t count = 0;
    BOUGH_ASSIGN(const Nodes point, settled(sides.before, {at}));
    BOUGH_ASSIGN(auto pointEdits, editsAt(point, theirs, {at}, true, compare, count));
    PointMoved moved{id, difference(sides.before, point), {}, log_.newEpoch()};
    moved.point.insert(moved.point.end(), pointEdits.begin(), pointEdits.end());
    if (how == Take::Theirs) {
      BOUGH_ASSIGN(const Nodes tree, settled(sides.after, {at}));
      BOUGH_ASSIGN(auto treeEdits, editsAt(tree, theirs, {at}, true, compare, count));
      moved.tree = difference(sides.after, tree);
      moved.tree.insert(moved.tree.end(), treeEdits.begin(), treeEdits.end());
    }
    {
      const std::lock_guard guard(lock_);
      BOUGH_TRY(branchOf(id));
      const BranchPtr parent = ledger_.find(target);
      std::unique_lock<std::shared_mutex> holdParent;
      if (parent) holdParent = std::unique_lock(parent->lock);
      const std::unique_lock hold(branch->lock);
      if (!branch->tree.nodes.sameAs(sides.after) || !branch->point.sameAs(sides.before)) continue;
      failPoint("store.resolve.begin");
      // The parent's objects are in the branch's point now: the parent writes on into copies.
      std::vector<Record> records{moved};
      if (parent) records.push_back(PointMoved{target, {}, {}, log_.newEpoch()});
      BOUGH_TRY(record(records));
      failPoint("store.resolve.logged");
      if (const auto shown = views_.find(id); shown != views_.end()) shown->second->treeReplaced(sides.after);
    }
    showReplaced(branch, sides.after);
    return Done{};
  }
  return keepsChanging(id);
}

}  // namespace bough
