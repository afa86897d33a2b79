// Discarding branches. See store.h.
#include <algorithm>
#include <utility>

#include "native/branchfs/store.h"
#include "native/common/fail_point.h"

namespace bough {

Result<std::vector<BranchId>> Store::abort(const BranchId& id, bool recursive) {
  std::vector<BranchId> gone;
  std::vector<BranchPtr> dead;
  std::vector<std::shared_ptr<BranchMount>> mounts;
  std::vector<std::shared_ptr<View>> views;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(const BranchPtr branch, branchOf(id));
    dead.push_back(branch);
    for (std::size_t i = 0; i < dead.size(); i++) {
      for (const BranchPtr& child : ledger_.childrenOf(dead[i]->id)) {
        if (!recursive && child->state == BranchState::Live) {
          return Error{EBUSY, "E_HAS_CHILDREN",
                       "Branch " + id + " has live branches below it (" + child->id +
                           "). Discard or commit them first, or discard with all below."};
        }
        dead.push_back(child);
      }
    }
    for (const BranchPtr& one : dead) gone.push_back(one->id);

    // From here on nothing of them may reach the log: a record of a branch that is gone would not fit.
    std::vector<BranchState> states;
    for (const BranchPtr& one : dead) {
      const std::unique_lock hold(one->lock);
      states.push_back(one->state.exchange(BranchState::Superseded));
    }
    failPoint("store.abort.begin");
    if (auto done = record(BranchesGone{gone}, true); !done) {
      for (std::size_t i = 0; i < dead.size(); i++) dead[i]->state = states[i];
      return done.error();
    }
    failPoint("store.abort.logged");
    for (const BranchId& one : gone) {
      if (auto mounted = mounts_.extract(one)) mounts.push_back(std::move(mounted.mapped()));
      if (auto view = views_.extract(one)) views.push_back(std::move(view.mapped()));
    }
  }
  // The views live on for a moment and still hear of changes of the base: they must not tell a mount that is gone.
  for (const BranchPtr& one : dead) {
    const std::lock_guard listeners(one->listenersLock);
    one->listeners.clear();
  }
  keptMayGo_ = true;
  for (auto& mount : mounts) mount->stop();
  mounts.clear();
  emit(GoneEvent{gone});
  bury(std::move(dead), std::move(views));
  return gone;
}

}  // namespace bough
