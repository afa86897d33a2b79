// Branch points. See store.h.
#include <sys/random.h>

#include <chrono>
#include <string>

#include "native/branchfs/store.h"
#include "native/common/fail_point.h"

namespace bough {
namespace {

constexpr std::uint32_t kMaxCount = 1000;

BranchId newBranchId() {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  unsigned char random[10];
  std::size_t have = 0;
  while (have < sizeof random) {
    const ssize_t n = ::getrandom(random + have, sizeof random - have, 0);
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  BranchId id = "b";
  for (const unsigned char byte : random) id.push_back(kAlphabet[byte & 31]);
  return id;
}

}  // namespace

Result<MadeBranches> Store::create(const BranchPlan& plan) {
  using Clock = std::chrono::steady_clock;
  if (plan.count == 0 || plan.count > kMaxCount) {
    return Error{EINVAL, "E_BAD_REQUEST", "The number of branches to make must be from 1 to 1000."};
  }
  MadeBranches result;
  {
    const std::lock_guard guard(lock_);
    BranchPtr parent;
    if (plan.parent != kBase) {
      BOUGH_ASSIGN(parent, branchOf(plan.parent));
      if (parent->state != BranchState::Live) {
        return Error{
            EINVAL, "E_STATE",
            "Branch " + plan.parent +
                " is no longer live, so nothing can branch from it. Branch from its parent, or rebase it first."};
      }
      if (const auto mounted = mounts_.find(plan.parent); plan.flush && mounted != mounts_.end()) {
        BOUGH_TRY(mounted->second->flush());
      }
    }
    BranchesMade made;
    made.parent = plan.parent;
    made.group = log_.newGroup();
    made.exclusive = plan.exclusive;
    made.createdMs =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    for (std::uint32_t i = 0; i < plan.count; i++) {
      BranchId id = newBranchId();
      while (ledger_.branches.contains(id)) id = newBranchId();
      made.made.push_back({std::move(id), i < plan.names.size() ? plan.names[i] : std::string(), log_.newEpoch()});
    }
    made.parentEpoch = log_.newEpoch();
    failPoint("store.create.begin");
    const Record one = made;
    if (parent) {
      const auto start = Clock::now();
      const std::unique_lock hold(parent->lock);
      BOUGH_TRY(record(one));
      result.pauseUs = static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
    } else {
      BOUGH_TRY(record(one));
    }
    failPoint("store.create.logged");
    result.group = made.group;
    for (const auto& child : made.made) result.branches.push_back(infoOf(*ledger_.find(child.id)));
  }
  for (const BranchInfo& info : result.branches) emit(BranchEvent{info});
  return result;
}

}  // namespace bough
