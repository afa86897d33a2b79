// View: finding nodes, their attributes, and counting what the transport knows. See view.h.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "native/branchfs/open_file.h"
#include "native/branchfs/view_draft.h"

namespace bough {

namespace {

constexpr std::size_t kMaxOtherPlaces = 16;

/// The same file, not only the same inode number.
bool sameFile(const Identity& identity, const BaseStat& stat) {
  return identity.known && identity.dev == stat.dev && identity.ino == stat.ino && identity.btime == stat.btime;
}

Time later(const Time& a, const Time& b) { return a < b ? b : a; }
Time timeOf(const timespec& time) { return Time{time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)}; }

}  // namespace

View::View(std::shared_ptr<Branch> branch, Base& base, Objects& objects)
    : View(std::move(branch), base, objects, Source::Tree, Nodes()) {}

View::View(std::shared_ptr<Branch> branch, Base& base, Objects& objects, Source source, Nodes own)
    : branch_(std::move(branch)), base_(base), objects_(objects), source_(source), own_(std::move(own)) {
  known_[kRootNode].lookups = 1;  // never forgotten
}

View::~View() {
  if (!listening_) return;
  base_.watch().unlisten(this);
  for (const auto& [id, known] : known_) {
    if (known.watching == Watching::Yes) base_.watch().remove(id);
  }
}

std::unique_ptr<View> View::ofPoint(std::shared_ptr<Branch> branch, Base& base, Objects& objects) {
  return std::unique_ptr<View>(new View(std::move(branch), base, objects, Source::Point, Nodes()));
}

std::unique_ptr<View> View::ofNodes(std::shared_ptr<Branch> branch, Nodes nodes, Base& base, Objects& objects) {
  return std::unique_ptr<View>(new View(std::move(branch), base, objects, Source::Own, std::move(nodes)));
}

const Nodes& View::nodes() const {
  if (source_ == Source::Tree) return branch_->tree.nodes;
  return source_ == Source::Point ? branch_->point : own_;
}

Result<> View::mayChange() const {
  if (source_ != Source::Tree || branch_->state != BranchState::Live) return sys(EROFS);
  return Done{};
}

/// Where the base has a virtual node: the names up to the first folder that the tree has.
Result<BaseRef> View::refOf(NodeId id) {
  std::vector<const std::string*> names;
  BaseRef ref;
  std::lock_guard guard(knownLock_);
  for (NodeId at = id; at != kRootNode || nodes().contains(at);) {
    if (const NodePtr* node = nodes().find(at)) {
      if ((*node)->kind != Kind::Directory || !(*node)->hasUnder) return sys(ESTALE);
      // Something else stands at the place now.
      if (!names.empty() && (*node)->entries.contains(*names.back())) return sys(ESTALE);
      ref = (*node)->under;
      break;
    }
    auto known = known_.find(at);
    if (known == known_.end() || names.size() > 4096) return sys(ESTALE);
    names.push_back(&known->second.place.second);
    at = known->second.place.first;
  }
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!ref.path.empty()) ref.path += '/';
    ref.path += **name;
  }
  return ref;
}

Result<View::Found> View::find(NodeId id) {
  Found found;
  found.id = id;
  found.node = nodes().find(id);
  if (found.node) return found;
  if (source_ == Source::Tree) {
    auto orphan = branch_->orphans.find(id);
    if (orphan != branch_->orphans.end()) {
      found.node = &orphan->second;
      return found;
    }
  }
  auto verify = [&]() -> Result<> {
    auto stat = base_.stat(found.ref);
    if (!stat)
      return sys(stat.error().errnum == ENOENT || stat.error().errnum == ENOTDIR ? ESTALE : stat.error().errnum);
    found.stat = *stat;
    if (id != kRootNode && knownAsAnother(id, found.stat)) return sys(ESTALE);
    return Done{};
  };
  auto ref = refOf(id);
  Result<> verified = ref ? Result<>(Done{}) : Result<>(ref.error());
  if (ref) {
    found.ref = std::move(*ref);
    verified = verify();
  }
  if (verified) return found;
  // A base file with several names may have lost the one that we met last.
  std::vector<Place> others;
  {
    std::lock_guard guard(knownLock_);
    auto known = known_.find(id);
    if (known != known_.end()) others = known->second.otherPlaces;
  }
  for (const Place& other : others) {
    auto folder = findFolder(other.first);
    std::optional<BaseRef> under = folder ? underOf(*folder) : std::nullopt;
    if (!under || (folder->node && (*folder->node)->entries.contains(other.second))) continue;
    found.ref = below(*under, other.second);
    if (!verify()) continue;
    moved(id, other.first, other.second);
    return found;
  }
  return verified.error();
}

Result<View::Found> View::findFolder(NodeId id) {
  Found found;
  found.id = id;
  found.node = nodes().find(id);
  if (!found.node && source_ == Source::Tree) {
    auto orphan = branch_->orphans.find(id);
    if (orphan != branch_->orphans.end()) found.node = &orphan->second;
  }
  if (found.node) {
    if ((*found).kind != Kind::Directory) return sys(ENOTDIR);
    return found;
  }
  BOUGH_ASSIGN(found.ref, refOf(id));
  found.stat.kind = Kind::Directory;
  return found;
}

/// The base folder whose names show through; nothing if there is none.
std::optional<BaseRef> View::underOf(const Found& folder) const {
  if (!folder.node) return folder.ref;
  if ((*folder).hasUnder) return (*folder).under;
  return std::nullopt;
}

Result<View::Found> View::child(const Found& folder, std::string_view name, int folderFd) {
  if (folder.kind() != Kind::Directory) return sys(ENOTDIR);
  if (folder.node) {
    if (const NodeId* id = (*folder).entries.find(name)) {
      if (*id == kNoNode) return sys(ENOENT);
      Found found;
      found.id = *id;
      found.node = nodes().find(*id);
      if (!found.node) return sys(EIO);  // the tree is damaged: every entry has its node
      return found;
    }
    if (!(*folder).hasUnder) return sys(ENOENT);
  }
  const BaseRef& under = folder.node ? (*folder).under : folder.ref;
  if (name.size() > 255) return sys(ENAMETOOLONG);
  if (base_.hidden(under, name)) return sys(ENOENT);
  BaseRef ref = below(under, name);
  auto stat = folderFd >= 0 ? base_.statIn(folderFd, under, name) : base_.stat(ref);
  if (!stat) {
    if (stat.error().errnum != ENOTDIR && stat.error().errnum != ELOOP) return stat.error();
    // What the branch has as a folder is none in the base any more; a virtual node may never have been one.
    return sys(folder.node ? ENOENT : ENOTDIR);
  }
  return fromBase(std::move(ref), *stat);
}

/// A base file that stands at its own place, as a node: mostly virtual.
Result<View::Found> View::fromBase(BaseRef ref, BaseStat stat) {
  Found found;
  found.id = base_.idOf(stat);
  // The number may be taken: by a folder or file that the base has since moved here, or by one that had this inode
  // before. Then another number is derived from what the file is, the same each time.
  for (std::uint64_t attempt = 1; attempt < 16; attempt++) {
    const NodePtr* taken = nodes().find(found.id);
    if (taken && stat.kind != Kind::Directory && stat.nlink > 1 && sameFile((*taken)->identity, stat)) {
      found.node = taken;  // another name of a file that the branch has changed
      return found;
    }
    bool free = !taken && !knownAsAnother(found.id, stat);
    if (free && source_ == Source::Tree && !branch_->orphans.empty()) free = !branch_->orphans.contains(found.id);
    if (free) break;
    found.id = base_.idOf(stableHash(stat.dev + attempt) ^ static_cast<std::uint64_t>(stat.btime.sec),
                          stableHash(stat.ino + attempt) ^ stat.btime.nsec);
  }
  found.ref = std::move(ref);
  found.stat = stat;
  return found;
}

/// True when the transport knows this number as another base file than `stat`.
bool View::knownAsAnother(NodeId id, const BaseStat& stat) {
  std::lock_guard guard(knownLock_);
  auto known = known_.find(id);
  if (known == known_.end() || known->second.ino == 0) return false;
  return known->second.ino != stat.ino || known->second.dev != stat.dev || known->second.btime != stat.btime;
}

/// Whether the base has a name that would show through at a folder's `under`.
bool View::namesBelow(const BaseRef& under, std::string_view name) {
  return !base_.hidden(under, name) && base_.stat(below(under, name)).ok();
}

/// What a new name must be.
Result<> View::mayMake(const Found& folder, std::string_view name) {
  if (name.empty() || name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
    return sys(EINVAL);
  }
  if (name == "." || name == "..") return sys(EEXIST);
  if (name.size() > 255) return sys(ENAMETOOLONG);
  if (folder.node && (*folder).nlink == 0) return sys(ENOENT);  // removed, but still somebody's working directory
  std::optional<BaseRef> under = underOf(folder);
  if (under ? base_.hidden(*under, name) : base_.hiddenName(name)) return sys(EACCES);
  return Done{};
}

Result<Attr> View::attrOf(const Found& found) {
  Attr attr;
  attr.id = found.id;
  if (!found.node) {
    const BaseStat& stat = found.stat;
    attr.kind = stat.kind;
    attr.mode = stat.mode;
    attr.uid = stat.uid;
    attr.gid = stat.gid;
    attr.rdev = stat.rdev;
    attr.nlink = stat.nlink;
    attr.size = stat.size;
    attr.blocks = stat.blocks;
    attr.atime = stat.atime;
    attr.mtime = stat.mtime;
    attr.ctime = stat.ctime;
    attr.btime = stat.btime;
    return attr;
  }
  const Node& node = *found;
  attr.kind = node.kind;
  attr.mode = node.mode;
  attr.uid = node.uid;
  attr.gid = node.gid;
  attr.rdev = node.rdev;
  attr.nlink = node.nlink;
  attr.atime = node.atime;
  attr.mtime = node.mtime;
  attr.ctime = node.ctime;
  attr.btime = node.btime;
  attr.size = node.size;
  if (node.kind == Kind::Symlink) attr.size = node.target.size();
  if (node.kind == Kind::Directory) {
    attr.size = std::max<std::uint64_t>(node.size, 4096);
    attr.blocks = 8;
  }
  if (node.content.where == Content::Where::Object) {
    BOUGH_ASSIGN(struct stat status, objects_.stat(node.content.object));
    attr.size = static_cast<std::uint64_t>(status.st_size);
    attr.blocks = static_cast<std::uint64_t>(status.st_blocks);
    if (!node.timesHeld) {
      attr.atime = timeOf(status.st_atim);
      attr.mtime = timeOf(status.st_mtim);
      attr.ctime = later(attr.ctime, timeOf(status.st_ctim));
    }
  } else if (node.content.where == Content::Where::Base) {
    auto stat = base_.stat(node.content.base);
    attr.blocks = (attr.size + 511) / 512;
    if (stat && stat->kind == Kind::File) {
      attr.size = stat->size;
      attr.blocks = stat->blocks;
      attr.ctime = later(attr.ctime, stat->ctime);
      if (!node.timesHeld) {
        attr.atime = stat->atime;
        attr.mtime = stat->mtime;
      }
    }
  }
  return attr;
}

/// How long the kernel may believe what it hears of a node. `folder`: where it was found; kNoNode if that is not known.
Keep View::keepOf(const Found& found, NodeId folder) {
  bool fromBase = !found.node || (*found).content.where == Content::Where::Base;
  if (!fromBase || source_ != Source::Tree) return Keep::Forever;
  const BaseRef& ref = found.node ? (*found).content.base : found.ref;
  if (ref.root != 0) return Keep::Forever;  // kept files never change
  std::lock_guard guard(knownLock_);
  auto watched = [&](NodeId id) {
    auto known = known_.find(id);
    return known != known_.end() && known->second.watching == Watching::Yes;
  };
  if (!found.node && found.stat.kind == Kind::Directory) return watched(found.id) ? Keep::Forever : Keep::Second;
  auto known = known_.find(found.id);
  if (known == known_.end()) return Keep::Second;
  if (folder == kNoNode) folder = known->second.place.first;
  // Another name of the file can be in a folder that nobody watches, or its data be somewhere else.
  if (found.node || found.stat.nlink > 1) return Keep::Second;
  return watched(folder) ? Keep::Forever : Keep::Second;
}

void View::startListening() {
  if (listening_ || source_ != Source::Tree) return;
  std::call_once(listenOnce_, [this] {
    base_.watch().listen(this);
    listening_ = true;
  });
}

View::Watching View::watchFolder(const Found& folder) {
  if (source_ != Source::Tree || !listening_) return Watching::Cannot;
  std::optional<BaseRef> under = underOf(folder);
  if (!under || under->root != 0) return Watching::Cannot;
  {
    std::lock_guard guard(knownLock_);
    auto known = known_.find(folder.id);
    if (known == known_.end()) return Watching::Cannot;
    if (known->second.watching != Watching::NotYet) return known->second.watching;
  }
  auto fd = base_.openPath(*under);
  auto stat = fd ? statOf(fd->get()) : Result<BaseStat>(fd.error());
  bool added = stat && base_.watch().add(folder.id, fd->get());
  std::lock_guard guard(knownLock_);
  auto known = known_.find(folder.id);
  if (known == known_.end() || known->second.watching == Watching::Yes) {  // forgotten, or another thread was faster
    if (added) base_.watch().remove(folder.id);
    return known == known_.end() ? Watching::Cannot : Watching::Yes;
  }
  known->second.watching = added ? Watching::Yes : Watching::Cannot;
  if (added) {
    known->second.watchedDev = stat->dev;
    known->second.watchedIno = stat->ino;
  }
  return known->second.watching;
}

/// Counts a lookup and remembers the place.
void View::learn(const Found& found, NodeId folder, std::string_view name) {
  std::lock_guard guard(knownLock_);
  Known& known = known_[found.id];
  known.lookups++;
  if (!found.node) {
    known.dev = found.stat.dev;
    known.ino = found.stat.ino;
    known.btime = found.stat.btime;
  }
  if (found.id == kRootNode || (known.place.first == folder && known.place.second == name)) return;
  if (known.place.first != kNoNode && found.kind() != Kind::Directory &&
      (found.node ? (*found).nlink : found.stat.nlink) > 1) {
    std::erase(known.otherPlaces, Place(folder, name));
    if (known.otherPlaces.size() == kMaxOtherPlaces) known.otherPlaces.erase(known.otherPlaces.begin());
    known.otherPlaces.push_back(std::move(known.place));
  }
  known.place = Place(folder, name);
}

Looked View::look(const Found& found, const Attr& attr, NodeId folder, std::string_view name) {
  learn(found, folder, name);
  if (found.kind() == Kind::Directory) watchFolder(found);
  return Looked{attr, keepOf(found, folder)};
}

bool View::isKnown(NodeId id) {
  std::lock_guard guard(knownLock_);
  return known_.contains(id);
}

void View::moved(NodeId id, NodeId folder, std::string_view name) {
  std::lock_guard guard(knownLock_);
  auto known = known_.find(id);
  if (known == known_.end()) return;
  std::erase(known->second.otherPlaces, Place(folder, name));
  known->second.place = Place(folder, name);
}

/// Whether `folder` is `ancestor` or lies below it.
bool View::isInside(NodeId folder, NodeId ancestor) {
  std::lock_guard guard(knownLock_);
  for (int depth = 0; depth < 4096; depth++) {
    if (folder == ancestor) return true;
    if (folder == kRootNode) return false;
    auto known = known_.find(folder);
    if (known == known_.end()) return false;
    folder = known->second.place.first;
  }
  return true;
}

void View::dropKnown(NodeId id, std::uint64_t lookups, std::uint32_t handles) {
  if (id == kRootNode && lookups > 0) return;
  bool orphan = false;
  bool watched = false;
  {
    std::lock_guard guard(knownLock_);
    auto at = known_.find(id);
    if (at == known_.end()) return;
    Known& known = at->second;
    known.lookups -= std::min(known.lookups, lookups);
    known.handles -= std::min(known.handles, handles);
    if (known.lookups > 0 || known.handles > 0) return;
    orphan = known.orphan;
    watched = known.watching == Watching::Yes;
    known_.erase(at);
  }
  if (watched) base_.watch().remove(id);
  if (!orphan) return;
  NodePtr freedOutsideTheLock;
  std::unique_lock lock(branch_->lock);
  auto at = branch_->orphans.find(id);
  if (at == branch_->orphans.end() || isKnown(id)) return;
  freedOutsideTheLock = std::move(at->second);
  branch_->orphans.erase(at);
}

Result<Looked> View::lookup(NodeId parent, std::string_view name) {
  if (name.size() > 255) return sys(ENAMETOOLONG);
  startListening();
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found folder, findFolder(parent));
  if (parent == kRootNode) watchFolder(folder);
  if (name == "." || name == "..") {
    NodeId id = parent;
    if (name == ".." && parent != kRootNode) {
      std::lock_guard guard(knownLock_);
      auto known = known_.find(parent);
      if (known == known_.end() || known->second.place.first == kNoNode) return sys(ESTALE);
      id = known->second.place.first;
    }
    BOUGH_ASSIGN(Found found, find(id));
    BOUGH_ASSIGN(Attr attr, attrOf(found));
    std::lock_guard guard(knownLock_);
    known_[id].lookups++;
    return Looked{attr, Keep::Second};
  }
  BOUGH_ASSIGN(Found found, child(folder, name));
  BOUGH_ASSIGN(Attr attr, attrOf(found));
  return look(found, attr, parent, name);
}

Result<Looked> View::lookupIn(NodeId parent, std::string_view name, int folderFd) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found folder, findFolder(parent));
  BOUGH_ASSIGN(Found found, child(folder, name, folderFd));
  BOUGH_ASSIGN(Attr attr, attrOf(found));
  return look(found, attr, parent, name);
}

void View::forget(NodeId id, std::uint64_t n) { dropKnown(id, n, 0); }

Result<Looked> View::getattr(NodeId id, std::optional<Handle> handle) {
  std::shared_lock lock(branch_->lock);
  auto found = find(id);
  if (!found && handle) {
    // Only the handle still has the file: the base lost it while it was open.
    auto file = fileOf(*handle);
    SharedFd fd = file ? (*file)->last().second : nullptr;
    if (!fd) return found.error();
    Found open;
    open.id = id;
    BOUGH_ASSIGN(open.stat, statOf(fd->get()));
    BOUGH_ASSIGN(Attr attr, attrOf(open));
    return Looked{attr, Keep::No};
  }
  if (!found) return found.error();
  BOUGH_ASSIGN(Attr attr, attrOf(*found));
  return Looked{attr, keepOf(*found, kNoNode)};
}

Result<std::string> View::readlink(NodeId id) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, find(id));
  if (found.kind() != Kind::Symlink) return sys(EINVAL);
  if (found.node) return (*found).target;
  return base_.readlink(found.ref);
}

Result<struct statvfs> View::statfs() {
  BOUGH_ASSIGN(struct statvfs status, objects_.statfs());
  status.f_namemax = 255;
  return status;
}

}  // namespace bough
