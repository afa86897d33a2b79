// Bringing a branch up to date with its parent. See store.h.
#include <utility>

#include "native/branchfs/store.h"
#include "native/branchfs/store_merge.h"
#include "native/common/fail_point.h"

namespace bough {
namespace {

constexpr int kTriesWithoutLocks = 3;

}  // namespace

Result<std::uint64_t> Store::rebase(const BranchId& id, Refusal& refusal) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  std::optional<Prepared> prepared;
  Nodes before;
  for (int attempt = 0;; attempt++) {
    BranchId target;
    {
      const std::lock_guard guard(lock_);
      BOUGH_ASSIGN(target, targetOf(*branch));
    }
    BOUGH_ASSIGN(prepared, prepare(sidesOf(*branch), nodesOf(target), {}));
    const std::lock_guard guard(lock_);
    if (branch->state == BranchState::Committed) return mustBeLive(*branch).error();
    if (!ledger_.find(id)) return branchOf(id).error();
    const BranchPtr parent = ledger_.find(target);
    std::unique_lock<std::shared_mutex> holdParent;
    if (parent) holdParent = std::unique_lock(parent->lock);
    const std::unique_lock hold(branch->lock);
    branch->foldAdopted();
    const Nodes nodes = parent ? parent->tree.nodes : Nodes();
    const bool fits = prepared->parent.sameAs(nodes) && prepared->tree.sameAs(branch->tree.nodes) &&
                      prepared->point.sameAs(branch->point);
    if (!fits && attempt < kTriesWithoutLocks) continue;
    if (!fits) {
      BOUGH_ASSIGN(prepared, prepare({branch->point, branch->tree.nodes}, nodes, {}));
    }
    BOUGH_TRY(refuseConflicts(*prepared, refusal));
    before = branch->tree.nodes;
    Rebased made;
    made.branch = id;
    made.parent = target;
    made.epoch = log_.newEpoch();
    made.parentEpoch = log_.newEpoch();
    made.change = Change{difference(nodes, prepared->theirs), std::move(prepared->merged.edits)};
    failPoint("store.rebase.begin");
    BOUGH_TRY(record(made));
    failPoint("store.rebase.logged");
    if (const auto view = views_.find(id); view != views_.end()) view->second->treeReplaced(before);
    break;
  }
  showReplaced(branch, before);
  tell({id});
  return shownCount(prepared->changes);
}

}  // namespace bough
