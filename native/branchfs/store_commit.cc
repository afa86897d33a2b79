// Commits, and those into a branch. See store.h.
#include <chrono>
#include <utility>

#include "native/branchfs/store.h"
#include "native/branchfs/store_merge.h"
#include "native/common/fail_point.h"

namespace bough {
namespace {

constexpr int kTriesWithoutLocks = 3;

std::uint64_t microsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

std::int64_t Store::nowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<BranchId> Store::targetOf(const Branch& branch) const {
  BranchId target = branch.parent;
  for (std::size_t steps = 0; target != kBase; steps++) {
    const BranchPtr parent = ledger_.find(target);
    if (!parent || steps > ledger_.branches.size()) {
      return Error{ENOENT, "E_NO_BRANCH", "The parent " + target + " of branch " + branch.id + " is gone."};
    }
    // A parent that was committed lives on in what it was committed into.
    if (parent->state != BranchState::Committed) break;
    target = parent->committedInto;
  }
  return target;
}

std::vector<BranchId> Store::losersOf(const Branch& branch) const {
  std::vector<BranchId> losers;
  if (!branch.exclusive || branch.group == 0) return losers;
  for (const BranchPtr& sibling : ledger_.childrenOf(branch.parent)) {
    if (sibling->group == branch.group && sibling->id != branch.id && sibling->state == BranchState::Live) {
      losers.push_back(sibling->id);
    }
  }
  return losers;
}

Result<CommitResult> Store::commit(const BranchId& id, const std::vector<std::string>& paths, Refusal& refusal) {
  const auto start = std::chrono::steady_clock::now();
  BranchPtr child, parent;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(child, branchOf(id));
    BOUGH_TRY(mustBeLive(*child));
    BOUGH_ASSIGN(const BranchId target, targetOf(*child));
    if (target != kBase) {
      BOUGH_ASSIGN(parent, branchOf(target));
      BOUGH_TRY(mustBeLive(*parent));
    }
  }
  Result<CommitResult> result =
      parent ? commitIntoBranch(child, parent, paths, refusal) : commitIntoBase(child, paths, refusal);
  if (!result) return result;
  result->tookUs = microsSince(start);
  std::vector<BranchId> told = result->superseded;
  told.push_back(id);
  if (parent) told.push_back(parent->id);
  tell(told);
  return result;
}

Result<> Store::mustBeLive(const Branch& branch) const {
  switch (branch.state.load()) {
    case BranchState::Live:
      return Done{};
    case BranchState::Committed:
      return Error{EINVAL, "E_STATE",
                   "Branch " + branch.id + " is committed already. Undo the commit to go on with it."};
    case BranchState::Superseded:
      break;
  }
  return Error{
      EINVAL, "E_STATE",
      "Branch " + branch.id + " is superseded: another of its group was committed. Rebase it to make it live again."};
}

Result<CommitResult> Store::commitIntoBranch(const BranchPtr& child, const BranchPtr& parent,
                                             const std::vector<std::string>& paths, Refusal& refusal) {
  CommittedIntoBranch made;
  made.facts.branch = child->id;
  made.facts.into = parent->id;
  made.facts.partial = !paths.empty();
  Nodes before;
  std::optional<Prepared> prepared;
  for (int attempt = 0;; attempt++) {
    if (attempt > 0) {  // the slow part, while nobody waits
      BOUGH_ASSIGN(prepared, prepare(sidesOf(*child), nodesOf(parent->id), paths));
    }
    const std::lock_guard guard(lock_);
    BOUGH_TRY(mustBeLive(*child));
    BOUGH_TRY(mustBeLive(*parent));
    const std::unique_lock holdParent(parent->lock);
    const std::unique_lock holdChild(child->lock);
    before = parent->tree.nodes;
    made.adopt = paths.empty() && before.sameAs(child->origin);
    if (made.adopt) {
      made.facts.paths = roughCount(child->point, child->tree.nodes);
    } else {
      child->foldAdopted();
      const bool fits = prepared && prepared->parent.sameAs(before) && prepared->tree.sameAs(child->tree.nodes) &&
                        prepared->point.sameAs(child->point);
      if (!fits && attempt < kTriesWithoutLocks) continue;
      if (!fits) {
        BOUGH_ASSIGN(prepared, prepare({child->point, child->tree.nodes}, before, paths));
      }
      BOUGH_TRY(refuseConflicts(*prepared, refusal));
      made.merged = Change{difference(before, prepared->theirs), prepared->merged.edits};
      fillFacts(*prepared, paths, made.facts);
    }
    made.facts.id = "c" + std::to_string(log_.newCommit());
    made.facts.atMs = nowMs();
    made.facts.epoch = log_.newEpoch();
    made.parentEpoch = log_.newEpoch();
    if (!made.facts.partial) made.facts.superseded = losersOf(*child);
    failPoint("store.commit.begin");
    BOUGH_TRY(record(made));
    failPoint("store.commit.logged");
    if (const auto view = views_.find(parent->id); view != views_.end()) view->second->treeReplaced(before);
    break;
  }
  showReplaced(parent, before);
  return CommitResult{made.facts.id, parent->id, made.facts.paths, made.facts.superseded, made.facts.partial, {}, 0};
}

Result<> Store::refuseConflicts(const Prepared& prepared, Refusal& refusal) const {
  if (prepared.merged.conflicts.empty()) return Done{};
  const NodeCompare compare(*base_, *objects_);
  for (const MergeConflict& one : prepared.merged.conflicts) refusal.conflicts.push_back(describe(one, compare));
  return conflictError(refusal.conflicts.size());
}

void Store::fillFacts(const Prepared& prepared, const std::vector<std::string>& paths, CommitFacts& facts) const {
  facts.paths = paths.empty() ? shownCount(prepared.changes) : prepared.selection.shown;
  if (paths.empty()) return;
  // From now on the branch has these paths in common with its parent.
  const NodeCompare compare(*base_, *objects_);
  const MergeInput input{prepared.point, prepared.tree, prepared.point, nullptr, &prepared.selection, false};
  const Nodes point = merge(input, compare).result;
  facts.point = difference(prepared.point, point);
  facts.pointBack = difference(point, prepared.point);
}

void Store::showReplaced(const BranchPtr& branch, const Nodes& before) {
  std::shared_ptr<View> view;
  std::shared_ptr<BranchMount> mount;
  {
    const std::lock_guard guard(lock_);
    if (const auto found = views_.find(branch->id); found != views_.end()) view = found->second;
    if (const auto found = mounts_.find(branch->id); found != mounts_.end()) mount = found->second;
  }
  if (view) view->invalidateSince(before);
  if (mount) mount->drainInvalidations();
}

void Store::tell(const std::vector<BranchId>& ids) {
  std::vector<BranchInfo> infos;
  {
    const std::lock_guard guard(lock_);
    for (const BranchId& id : ids) {
      if (const BranchPtr branch = ledger_.find(id)) infos.push_back(infoOf(*branch));
    }
  }
  for (const BranchInfo& info : infos) emit(BranchEvent{info});
}

std::vector<CommitInfo> Store::commits() const {
  const std::lock_guard guard(lock_);
  std::vector<CommitInfo> result;
  for (auto entry = ledger_.commits.rbegin(); entry != ledger_.commits.rend(); ++entry) {
    if (entry->forgotten) continue;
    const CommitFacts& facts = entry->facts;
    result.push_back({facts.id, facts.branch, facts.into, facts.atMs, facts.paths, true});
  }
  return result;
}

}  // namespace bough
