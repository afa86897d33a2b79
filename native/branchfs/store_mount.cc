// Mounting branches, whole or one folder of them, and again after a restart. See store.h.
#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "native/branchfs/store.h"
#include "native/common/log.h"

namespace bough {
namespace {

/// A path as View takes them: no empty names, no "." and "..".
bool isBelowRoot(const std::string& path) {
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    const std::string_view name = std::string_view(path).substr(from, slash - from);
    if (name.empty() || name == "." || name == "..") return false;
    from = slash + 1;
  }
  return true;
}

Error noFolder(const BranchId& id, const std::string& folder, int errnum) {
  std::string why = std::strerror(errnum);
  if (errnum == ENOENT) why = "it is not there, or hidden";
  if (errnum == ENOTDIR) why = "it is no folder";
  if (errnum == ELOOP) why = "it is a symlink, or one stands on the way";
  return Error{
      errnum, "E_NO_PATH",
      "Branch " + id + " cannot be shown from " + folder + ": " + why + ". Name a folder that the branch has."};
}

}  // namespace

Result<Store::Shown> Store::shownOf(Branch& branch, const std::string& folder, NodeId node) {
  Shown shown{folder, kNoNode, nullptr};
  if (folder.empty()) return shown;
  const std::shared_ptr<View> view = viewOf(ledger_.find(branch.id));
  if (node != kNoNode) {
    // After a restart: the very folder, also where it has another name by now.
    bool there = false;
    {
      const std::shared_lock hold(branch.lock);
      const NodePtr* found = branch.tree.nodes.find(node);
      there = found && (*found)->kind == Kind::Directory;
    }
    if (there) {
      BOUGH_ASSIGN(shown.subtree, Subtree::of(view, node));
      shown.node = node;
      return shown;
    }
  }
  if (!isBelowRoot(folder)) {
    return Error{EINVAL, "E_BAD_REQUEST",
                 "A path is relative to the base, without leading slash, empty names, \".\" and \"..\": " + folder};
  }
  auto there = view->resolve(folder);
  if (there && there->attr.kind == Kind::Symlink) return noFolder(branch.id, folder, ELOOP);
  if (there && there->attr.kind != Kind::Directory) return noFolder(branch.id, folder, ENOTDIR);
  if (!there) return noFolder(branch.id, folder, there.error().errnum);
  // In the tree the folder stays whatever becomes of the base's own; a branch that may not change shows it live.
  if (branch.state == BranchState::Live) BOUGH_TRY(view->settle(folder));
  auto subtree = Subtree::at(view, folder);
  if (!subtree) return noFolder(branch.id, folder, subtree.error().errnum);
  shown.subtree = std::move(*subtree);
  const std::shared_lock hold(branch.lock);
  if (branch.tree.nodes.contains(shown.subtree->folder())) shown.node = shown.subtree->folder();
  return shown;
}

Result<> Store::mount(const BranchId& id, const std::string& at, const std::string& folder) {
  return mountShown(id, at, folder, kNoNode);
}

Result<> Store::mountShown(const BranchId& id, const std::string& at, const std::string& folder, NodeId node) {
  BranchInfo info;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(const BranchPtr branch, branchOf(id));
    if (at.empty() || at.front() != '/') {
      return Error{EINVAL, "E_BAD_REQUEST", "The place to mount at must be an absolute path: " + at};
    }
    if (const auto mounted = mounts_.find(id); mounted != mounts_.end()) {
      if (mounted->second->alive()) {
        if (branch->mountAt == at && branch->mountFolder == folder) return Done{};
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
    BOUGH_ASSIGN(Shown shown, shownOf(*branch, folder, node));
    base_->addNever(at);
    BOUGH_ASSIGN(const auto made, BranchMount::start(viewOf(branch), std::move(shown.subtree), at, MountOptions{id}));
    {
      const std::lock_guard listeners(branch->listenersLock);
      branch->listeners.push_back(&made->invalidator());
    }
    if (auto done = record(Mounted{id, at, shown.folder, shown.node}); !done) {
      {
        const std::lock_guard listeners(branch->listenersLock);
        std::erase(branch->listeners, &made->invalidator());
      }
      made->stop();
      return done.error();
    }
    mounts_.emplace(id, made);
    info = infoOf(*branch);
  }
  emit(BranchEvent{info});
  return Done{};
}

Result<> Store::unmount(const BranchId& id) {
  std::shared_ptr<BranchMount> mount;
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
    if (!branch->mountAt.empty()) BOUGH_TRY(record(Mounted{id, {}, {}, kNoNode}, true));
    info = infoOf(*branch);
  }
  if (!mount) return Done{};
  mount->stop();
  emit(BranchEvent{info});
  return Done{};
}

void Store::restoreMounts() {
  struct Wanted {
    BranchId id;
    std::string at, folder;
    NodeId node;
  };
  std::vector<Wanted> wanted;
  {
    const std::lock_guard guard(lock_);
    for (const auto& [id, branch] : ledger_.branches) {
      if (branch->mountAt.empty() || mounts_.contains(id)) continue;
      wanted.push_back({id, branch->mountAt, branch->mountFolder, branch->mountNode});
    }
  }
  for (const auto& [id, at, folder, node] : wanted) {
    detachStaleMount(at);
    if (auto done = mountShown(id, at, folder, node); !done) {
      logLine("branch " + id + " cannot be mounted at " + at + " again: " + done.error().message);
      const std::lock_guard guard(lock_);
      if (auto forgotten = record(Mounted{id, {}, {}, kNoNode}); !forgotten) logLine(forgotten.error().message);
    }
  }
}

}  // namespace bough
