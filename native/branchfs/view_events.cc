// View: changes that come from outside (the person edits the base, the store replaces the tree), and telling the
// transports to drop what they have cached. See view.h.
#include <algorithm>

#include "native/branchfs/view_draft.h"

namespace bough {

/// Tells every transport; no locks held.
void View::tell(const std::vector<NodeId>& ids, const std::vector<Place>& names) {
  std::lock_guard guard(branch_->listenersLock);
  for (Invalidator* listener : branch_->listeners) {
    for (const Place& place : names) listener->entry(place.first, place.second);
    for (NodeId id : ids) listener->node(id);
  }
}

void View::nameChanged(NodeId folder, const std::string& name) {
  bool shows = true;
  {
    std::shared_lock lock(branch_->lock);
    const NodePtr* node = nodes().find(folder);
    shows = !node || !(*node)->entries.contains(name);
  }
  if (shows) tell({folder}, {Place(folder, name)});
}

void View::fileChanged(NodeId folder, const std::string& name) {
  NodeId id = folder;
  if (!name.empty()) {
    std::shared_lock lock(branch_->lock);
    auto in = findFolder(folder);
    auto found = in ? child(*in, name) : Result<Found>(in.error());
    if (!found) return;  // a name that is gone has an event of its own
    id = found->id;
  }
  tell({id}, {});
}

/// A folder of the tree stays when the base's folder under it goes, and shows whatever the base has there next. Its
/// watch has to move there too. (A virtual folder is another node then, and gets a watch of its own.)
void View::foldersMoved() {
  struct Watched {
    NodeId id;
    std::uint64_t dev, ino;
  };
  std::vector<NodeId> ids;
  std::vector<Place> names;
  {
    std::shared_lock lock(branch_->lock);
    std::vector<Watched> watched;
    {
      std::lock_guard guard(knownLock_);
      for (const auto& [id, known] : known_) {
        if (known.watching == Watching::Yes && nodes().contains(id)) {
          watched.push_back({id, known.watchedDev, known.watchedIno});
        }
      }
    }
    for (const Watched& one : watched) {
      auto folder = findFolder(one.id);
      std::optional<BaseRef> under = folder ? underOf(*folder) : std::nullopt;
      auto stat = under ? base_.stat(*under) : Result<BaseStat>(sys(ENOENT));
      if (stat && stat->dev == one.dev && stat->ino == one.ino) continue;
      {
        std::lock_guard guard(knownLock_);
        auto known = known_.find(one.id);
        if (known == known_.end() || known->second.watching != Watching::Yes) continue;
        known->second.watching = Watching::NotYet;
      }
      base_.watch().remove(one.id);
      if (folder) watchFolder(*folder);
      ids.push_back(one.id);
    }
    if (ids.empty()) return;
    std::sort(ids.begin(), ids.end());
    std::lock_guard guard(knownLock_);
    for (const auto& [id, known] : known_) {
      if (std::binary_search(ids.begin(), ids.end(), known.place.first)) names.push_back(known.place);
    }
  }
  tell(ids, names);
}

void View::everythingChanged() {
  std::vector<NodeId> ids;
  std::vector<Place> names;
  {
    std::lock_guard guard(knownLock_);
    for (const auto& [id, known] : known_) {
      ids.push_back(id);
      if (known.place.first != kNoNode) names.push_back(known.place);
    }
  }
  tell(ids, names);
}

void View::treeReplaced(const Nodes& before) {
  std::vector<NodeId> unwatch;
  Nodes::diff(before, nodes(), [&](NodeId id, const NodePtr* old, const NodePtr* now) {
    if (!old) {
      branch_->orphans.erase(id);  // it has a name again
      std::lock_guard guard(knownLock_);
      auto known = known_.find(id);
      if (known != known_.end()) known->second.orphan = false;
      return;
    }
    std::lock_guard guard(knownLock_);
    auto known = known_.find(id);
    if (known == known_.end()) return;
    const bool sameUnder = now && (*old)->hasUnder == (*now)->hasUnder && (*old)->under == (*now)->under;
    if (known->second.watching != Watching::NotYet && !sameUnder) {
      if (known->second.watching == Watching::Yes) unwatch.push_back(id);
      known->second.watching = Watching::NotYet;
    }
    if (now) return;
    auto orphan = std::make_shared<Node>(**old);
    orphan->nlink = 0;
    if (known->second.handles > 0 && (*old)->kind != Kind::Directory) {
      known->second.orphan = true;
      branch_->orphans[id] = std::move(orphan);
    }
  });
  for (NodeId id : unwatch) base_.watch().remove(id);
}

void View::invalidateSince(const Nodes& before) {
  Nodes now;
  {
    std::shared_lock lock(branch_->lock);
    now = nodes();
  }
  std::vector<NodeId> ids;
  std::vector<Place> names;
  std::vector<NodeId> foldersOfOtherUnder;
  Nodes::diff(before, now, [&](NodeId id, const NodePtr* old, const NodePtr* young) {
    ids.push_back(id);
    const bool wasFolder = old && (*old)->kind == Kind::Directory;
    const bool isFolder = young && (*young)->kind == Kind::Directory;
    if (!wasFolder && !isFolder) return;
    Entries none;
    Entries::diff(wasFolder ? (*old)->entries : none, isFolder ? (*young)->entries : none,
                  [&](const std::string& name, const NodeId*, const NodeId*) { names.emplace_back(id, name); });
    const bool sameUnder =
        wasFolder && isFolder && (*old)->hasUnder == (*young)->hasUnder && (*old)->under == (*young)->under;
    // A folder that only now is in the tree (or only was) shows the same base folder either way, unless it moved.
    if ((wasFolder && isFolder && !sameUnder) || (wasFolder != isFolder && old && young))
      foldersOfOtherUnder.push_back(id);
  });
  if (!foldersOfOtherUnder.empty()) {
    std::sort(foldersOfOtherUnder.begin(), foldersOfOtherUnder.end());
    std::lock_guard guard(knownLock_);
    for (const auto& [id, known] : known_) {
      if (std::binary_search(foldersOfOtherUnder.begin(), foldersOfOtherUnder.end(), known.place.first)) {
        names.push_back(known.place);
        ids.push_back(id);
      }
    }
  }
  tell(ids, names);
}

}  // namespace bough
