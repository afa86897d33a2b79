// View: listing folders. See view.h. A handle takes down the names when reading starts (or starts again); cookies count
// them, so a listing goes on where it was whatever happens to the folder.
#include <algorithm>

#include "native/branchfs/open_file.h"
#include "native/branchfs/view.h"

namespace bough {

/// All names of a folder: the base's that show through, then the tree's own.
Result<std::vector<View::FolderItem>> View::itemsOf(const Found& folder) {
  std::vector<FolderItem> items;
  const Entries* entries = folder.node ? &(*folder).entries : nullptr;
  if (std::optional<BaseRef> under = underOf(folder)) {
    auto names = base_.list(*under);
    // A folder that the base has lost shows what the branch has of it; one that the branch never touched is gone.
    if (!names && (!folder.node || (names.error().errnum != ENOENT && names.error().errnum != ENOTDIR))) {
      return names.error();
    }
    if (names) {
      items.reserve(names->size() + (entries ? entries->size() : 0));
      for (BaseName& name : *names) {
        if (entries && entries->contains(name.name)) continue;
        FolderItem item{std::move(name.name), base_.idOf(base_.device(), name.ino), name.kind};
        // Another number than the inode's: the rules of lookup say which.
        if (!name.kindKnown || nodes().contains(item.id)) {
          auto found = child(folder, item.name);
          if (!found) continue;
          item.id = found->id;
          item.kind = found->kind();
        }
        items.push_back(std::move(item));
      }
    }
  }
  if (entries) {
    entries->forEach([&](const std::string& name, NodeId id) {
      if (id == kNoNode) return;
      const NodePtr* node = nodes().find(id);
      if (node) items.push_back(FolderItem{name, id, (*node)->kind});
    });
  }
  return items;
}

Result<Opened> View::opendir(NodeId id) {
  startListening();
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, findFolder(id));
  {
    std::lock_guard guard(knownLock_);
    known_[id].handles++;
  }
  Opened opened;
  // A listing that the kernel has cached still counts only where somebody tells it of changes in the base.
  std::optional<BaseRef> under = underOf(found);
  opened.keepCache = !under || under->root != 0 || watchFolder(found) == Watching::Yes;
  opened.handle = nextHandle_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock guard(handlesLock_);
  folders_.emplace(opened.handle, std::make_shared<OpenFolder>(id));
  return opened;
}

void View::releasedir(Handle handle) {
  std::shared_ptr<OpenFolder> folder;
  {
    std::unique_lock guard(handlesLock_);
    auto at = folders_.find(handle);
    if (at == folders_.end()) return;
    folder = std::move(at->second);
    folders_.erase(at);
  }
  dropKnown(folder->id, 0, 1);
}

Result<> View::readdir(Handle handle, std::uint64_t cookie, bool plus, const std::function<bool(DirItem&)>& take) {
  std::shared_ptr<OpenFolder> open;
  {
    std::shared_lock guard(handlesLock_);
    auto at = folders_.find(handle);
    if (at == folders_.end()) return sys(EBADF);
    open = at->second;
  }
  std::lock_guard one(open->lock);
  if (cookie == 0 || !open->read) {
    std::shared_lock lock(branch_->lock);
    BOUGH_ASSIGN(Found folder, findFolder(open->id));
    NodeId parent = kRootNode;
    {
      std::lock_guard guard(knownLock_);
      auto known = known_.find(open->id);
      if (known != known_.end() && known->second.place.first != kNoNode) parent = known->second.place.first;
    }
    open->names.clear();
    open->names.push_back({".", open->id, Kind::Directory});
    open->names.push_back({"..", parent, Kind::Directory});
    if (!folder.node || (*folder).nlink > 0) {
      BOUGH_ASSIGN(std::vector<FolderItem> items, itemsOf(folder));
      for (FolderItem& item : items) open->names.push_back({std::move(item.name), item.id, item.kind});
    }
    open->read = true;
  }
  UniqueFd under;
  if (plus && cookie < open->names.size()) {
    std::shared_lock lock(branch_->lock);
    auto folder = findFolder(open->id);
    std::optional<BaseRef> ref = folder ? underOf(*folder) : std::nullopt;
    if (ref) {
      if (auto fd = base_.openPath(*ref)) under = std::move(*fd);
    }
  }
  for (std::size_t i = static_cast<std::size_t>(cookie); i < open->names.size(); i++) {
    const OpenFolder::Name& name = open->names[i];
    DirItem item;
    item.name = name.name;
    item.id = name.id;
    item.kind = name.kind;
    item.cookie = i + 1;
    if (plus && i >= 2) {
      // The lock is taken for each, so that nobody waits for a whole listing.
      auto looked = lookupIn(open->id, name.name, under.get());
      if (!looked && looked.error().errnum == ENOENT) continue;  // gone since
      if (looked) {
        item.id = looked->attr.id;
        item.kind = looked->attr.kind;
        item.looked = *looked;
      }
    }
    if (!take(item)) break;
  }
  return Done{};
}

}  // namespace bough
