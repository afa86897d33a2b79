// Mounting branches, and again after a restart. See store.h.
#include <sys/stat.h>

#include <utility>

#include "native/branchfs/store.h"
#include "native/common/log.h"

namespace bough {

Result<> Store::mount(const BranchId& id, const std::string& at) {
  BranchInfo info;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(const BranchPtr branch, branchOf(id));
    if (at.empty() || at.front() != '/') {
      return Error{EINVAL, "E_BAD_REQUEST", "The place to mount at must be an absolute path: " + at};
    }
    if (const auto mounted = mounts_.find(id); mounted != mounts_.end()) {
      if (mounted->second->alive()) {
        if (branch->mountAt == at) return Done{};
        return Error{EBUSY, "E_MOUNT",
                     "Branch " + id + " is mounted at " + branch->mountAt + " already. Unmount it first."};
      }
      {
        const std::lock_guard listeners(branch->listenersLock);
        std::erase(branch->listeners, &mounted->second->invalidator());
      }
      mounted->second->stop();  // somebody else unmounted it
      mounts_.erase(mounted);
    }
    base_->addNever(at);
    BOUGH_ASSIGN(auto made, Mount::start(*viewOf(branch), at, MountOptions{id}));
    {
      const std::lock_guard listeners(branch->listenersLock);
      branch->listeners.push_back(&made->invalidator());
    }
    if (auto done = record(Mounted{id, at}); !done) {
      {
        const std::lock_guard listeners(branch->listenersLock);
        std::erase(branch->listeners, &made->invalidator());
      }
      made->stop();
      return done.error();
    }
    mounts_.emplace(id, std::shared_ptr<Mount>(std::move(made)));
    info = infoOf(*branch);
  }
  emit(BranchEvent{info});
  return Done{};
}

Result<> Store::unmount(const BranchId& id) {
  std::shared_ptr<Mount> mount;
  BranchPtr branch;
  BranchInfo info;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(branch, branchOf(id));
    if (auto mounted = mounts_.extract(id)) {
      mount = std::move(mounted.mapped());
      const std::lock_guard listeners(branch->listenersLock);
      std::erase(branch->listeners, &mount->invalidator());
    }
    if (!branch->mountAt.empty()) BOUGH_TRY(record(Mounted{id, {}}, true));
    info = infoOf(*branch);
  }
  if (!mount) return Done{};
  mount->stop();
  emit(BranchEvent{info});
  return Done{};
}

void Store::restoreMounts() {
  std::vector<std::pair<BranchId, std::string>> wanted;
  {
    const std::lock_guard guard(lock_);
    for (const auto& [id, branch] : ledger_.branches) {
      if (!branch->mountAt.empty() && !mounts_.contains(id)) wanted.emplace_back(id, branch->mountAt);
    }
  }
  for (const auto& [id, at] : wanted) {
    detachStaleMount(at);
    if (auto done = mount(id, at); !done) {
      logLine("branch " + id + " cannot be mounted at " + at + " again: " + done.error().message);
      const std::lock_guard guard(lock_);
      if (auto forgotten = record(Mounted{id, {}}); !forgotten) logLine(forgotten.error().message);
    }
  }
}

}  // namespace bough
