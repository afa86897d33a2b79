// View: making, removing and moving names. See view.h. Each operation looks first, so that an error changes nothing,
// then puts its change into a Draft and commits it under the branch's exclusive lock.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>

#include "native/branchfs/open_file.h"
#include "native/branchfs/view_draft.h"

namespace bough {

namespace {

/// Folders count their subfolders, except on file systems that do not count (nlink 1).
void countSubfolder(Node& folder, int change) {
  if (folder.nlink < 2) return;
  folder.nlink = change > 0 ? folder.nlink + 1 : std::max(folder.nlink - 1, 2U);
}

/// The owner of something new in a folder, and the setgid rule.
void inherit(Node& node, const Node& folder, const Caller& caller) {
  node.uid = caller.uid;
  node.gid = caller.gid;
  if (!(folder.mode & S_ISGID)) return;
  node.gid = folder.gid;
  if (node.kind == Kind::Directory) node.mode |= S_ISGID;
}

}  // namespace

/// Makes a node with a name. `object`: the number of the file's object, which exists already and is this call's to keep
/// or to remove.
Result<Looked> View::make(const Caller& caller, NodeId parent, std::string_view name, Node node,
                          std::optional<ObjectId> object) {
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found folder, findFolder(parent));
  BOUGH_TRY(mayMake(folder, name));
  auto there = child(folder, name);
  if (there) return sys(EEXIST);
  if (there.error().errnum != ENOENT) return there.error();
  Draft draft(*this);
  BOUGH_TRY(draft.settle(parent));
  inherit(node, *draft.now(parent), caller);
  node.atime = node.mtime = node.ctime = node.btime = presentTime();
  node.nlink = node.kind == Kind::Directory ? 2 : 1;
  if (object) {
    node.content.where = Content::Where::Object;
    node.content.object = *object;
    node.content.epoch = branch_->tree.epoch;
    node.content.lease = objects_.lease(*object);
  }
  NodeId id = branch_->log->newNode();
  auto made = std::make_shared<const Node>(std::move(node));
  draft.add(id, made);
  Node& parentNode = draft.touch(parent);
  if (made->kind == Kind::Directory) countSubfolder(parentNode, +1);
  draft.name(parent, name, id);
  BOUGH_TRY(draft.commit());
  Found found;
  found.id = id;
  found.node = nodes().find(id);
  BOUGH_ASSIGN(Attr attr, attrOf(found));
  return look(found, attr, parent, name);
}

Result<Looked> View::mknod(const Caller& caller, NodeId parent, std::string_view name, Kind kind, std::uint32_t mode,
                           std::uint64_t rdev) {
  if (kind == Kind::Directory || kind == Kind::Symlink) return sys(EINVAL);
  Node node;
  node.kind = kind;
  node.mode = mode & 07777U;
  node.rdev = kind == Kind::CharDevice || kind == Kind::BlockDevice ? rdev : 0;
  return make(caller, parent, name, std::move(node), std::nullopt);
}

Result<Looked> View::mkdir(const Caller& caller, NodeId parent, std::string_view name, std::uint32_t mode) {
  Node node;
  node.kind = Kind::Directory;
  node.mode = mode & 07777U;
  return make(caller, parent, name, std::move(node), std::nullopt);
}

Result<Looked> View::symlink(const Caller& caller, NodeId parent, std::string_view name, std::string_view target) {
  if (target.empty()) return sys(ENOENT);
  if (target.size() > 4095) return sys(ENAMETOOLONG);
  Node node;
  node.kind = Kind::Symlink;
  node.mode = 0777;
  node.target = target;
  return make(caller, parent, name, std::move(node), std::nullopt);
}

Result<Looked> View::link(NodeId id, NodeId newParent, std::string_view newName) {
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found folder, findFolder(newParent));
  BOUGH_ASSIGN(Found target, find(id));
  if (target.kind() == Kind::Directory) return sys(EPERM);
  BOUGH_TRY(mayMake(folder, newName));
  auto there = child(folder, newName);
  if (there) return sys(EEXIST);
  if (there.error().errnum != ENOENT) return there.error();
  bool orphan = target.node && (*target).nlink == 0;
  if (orphan) {
    std::lock_guard guard(knownLock_);
    auto known = known_.find(id);
    if (known == known_.end() || !known->second.linkable) return sys(ENOENT);
  }
  Draft draft(*this);
  BOUGH_TRY(draft.settle(newParent));
  if (orphan) {
    auto node = std::make_shared<Node>(*target);
    node->nlink = 1;
    node->ctime = presentTime();
    draft.add(id, std::move(node));
  } else {
    BOUGH_TRY(draft.settle(id));
    Node& node = draft.edit(id);
    node.nlink++;
    node.ctime = presentTime();
  }
  draft.touch(newParent);
  draft.name(newParent, newName, id);
  BOUGH_TRY(draft.commit());
  if (orphan) {
    branch_->orphans.erase(id);
    std::lock_guard guard(knownLock_);
    Known& known = known_[id];
    known.orphan = known.linkable = false;
  }
  Found found;
  found.id = id;
  found.node = nodes().find(id);
  BOUGH_ASSIGN(Attr attr, attrOf(found));
  return look(found, attr, newParent, newName);
}

/// Takes the name of `was` out of a folder; a whiteout only where the base's name would show through.
void View::unname(Draft& draft, const Found& folder, std::string_view name, const Found& was) {
  std::optional<BaseRef> under = underOf(folder);
  draft.unname(folder.id, name, !was.node || (under && namesBelow(*under, name)));
}

/// One name less for `target`. The last one gone, it leaves the tree.
Result<> View::dropName(Draft& draft, const Found& target, const Place& place,
                        std::vector<std::pair<NodeId, NodePtr>>& orphans) {
  BOUGH_TRY(draft.settleAt(place, target));
  Node& node = draft.edit(target.id);
  node.ctime = presentTime();
  if (node.kind != Kind::Directory && node.nlink > 1) {
    node.nlink--;
    return Done{};
  }
  auto orphan = std::make_shared<Node>(node);
  orphan->nlink = 0;
  orphans.emplace_back(target.id, std::move(orphan));
  draft.drop(target.id);
  return Done{};
}

/// Keeps what has left the tree but is still open or known, until it is forgotten.
void View::keepOrphans(std::vector<std::pair<NodeId, NodePtr>>& orphans) {
  std::lock_guard guard(knownLock_);
  for (auto& [id, node] : orphans) {
    auto known = known_.find(id);
    if (known == known_.end()) continue;
    known->second.orphan = true;
    known->second.linkable = false;
    branch_->orphans[id] = std::move(node);
  }
}

/// Whether nothing is in a folder, also nothing that is hidden: removing it would take that away.
Result<bool> View::folderEmpty(const Found& folder) {
  bool empty = true;
  if (folder.node) {
    (*folder).entries.forEach([&](const std::string&, NodeId child) { empty = empty && child == kNoNode; });
  }
  std::optional<BaseRef> under = underOf(folder);
  if (!empty || !under) return empty;
  auto names = base_.list(*under, Base::Hidden::Shown);
  if (!names) {
    if (names.error().errnum == ENOENT || names.error().errnum == ENOTDIR) return true;  // gone from the base
    return names.error();
  }
  for (const BaseName& item : *names) {
    if (!folder.node || !(*folder).entries.contains(item.name)) return false;
  }
  return true;
}

Result<> View::unlink(NodeId parent, std::string_view name) {
  std::vector<std::pair<NodeId, NodePtr>> orphans;  // freed after the lock
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found folder, findFolder(parent));
  BOUGH_ASSIGN(Found target, child(folder, name));
  if (target.kind() == Kind::Directory) return sys(EISDIR);
  Draft draft(*this);
  BOUGH_TRY(draft.settle(parent));
  BOUGH_TRY(dropName(draft, target, Place(parent, name), orphans));
  unname(draft, folder, name, target);
  draft.touch(parent);
  BOUGH_TRY(draft.commit());
  keepOrphans(orphans);
  return Done{};
}

Result<> View::rmdir(NodeId parent, std::string_view name) {
  if (name == ".") return sys(EINVAL);
  if (name == "..") return sys(ENOTEMPTY);
  std::vector<std::pair<NodeId, NodePtr>> orphans;
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found folder, findFolder(parent));
  BOUGH_ASSIGN(Found target, child(folder, name));
  if (target.kind() != Kind::Directory) return sys(ENOTDIR);
  BOUGH_ASSIGN(bool empty, folderEmpty(target));
  if (!empty) return sys(ENOTEMPTY);
  Draft draft(*this);
  BOUGH_TRY(draft.settle(parent));
  BOUGH_TRY(dropName(draft, target, Place(parent, name), orphans));
  unname(draft, folder, name, target);
  countSubfolder(draft.touch(parent), -1);
  BOUGH_TRY(draft.commit());
  keepOrphans(orphans);
  return Done{};
}

Result<> View::rename(NodeId parent, std::string_view name, NodeId newParent, std::string_view newName,
                      std::uint32_t flags) {
  const bool exchange = flags & RENAME_EXCHANGE;
  if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) || (exchange && (flags & RENAME_NOREPLACE))) return sys(EINVAL);
  for (std::string_view one : {name, newName}) {
    if (one == "." || one == "..") return sys(EBUSY);
  }
  // An atomic save replaces a base file: its text is kept for three-way merges, as the first write in place keeps it.
  std::optional<Pristine> pristine;
  if (flags == 0) pristine = pristineOf(newParent, newName);
  std::vector<std::pair<NodeId, NodePtr>> orphans;
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found from, findFolder(parent));
  BOUGH_ASSIGN(Found to, findFolder(newParent));
  BOUGH_ASSIGN(Found source, child(from, name));
  const bool sourceIsFolder = source.kind() == Kind::Directory;
  if (sourceIsFolder && isInside(newParent, source.id)) return sys(EINVAL);
  BOUGH_TRY(mayMake(to, newName));
  auto target = child(to, newName);
  if (!target && (target.error().errnum != ENOENT || exchange)) return target.error();
  const bool targetIsFolder = target && target->kind() == Kind::Directory;
  if (target) {
    if (flags & RENAME_NOREPLACE) return sys(EEXIST);
    if (target->id == source.id) return Done{};  // two names of one file: POSIX wants nothing to happen
    if (exchange) {
      if (targetIsFolder && isInside(parent, target->id)) return sys(EINVAL);
    } else {
      if (sourceIsFolder && !targetIsFolder) return sys(ENOTDIR);
      if (!sourceIsFolder && targetIsFolder) return sys(EISDIR);
      if (targetIsFolder) {
        BOUGH_ASSIGN(bool empty, folderEmpty(*target));
        if (!empty) return sys(ENOTEMPTY);
      }
    }
  }

  Draft draft(*this);
  BOUGH_TRY(draft.settle(parent));
  BOUGH_TRY(draft.settle(newParent));
  BOUGH_TRY(draft.settleAt(Place(parent, name), source));
  draft.touch(parent);
  draft.touch(newParent);
  draft.edit(source.id).ctime = presentTime();
  if (exchange) {
    BOUGH_TRY(draft.settleAt(Place(newParent, newName), *target));
    draft.edit(target->id).ctime = presentTime();
    draft.name(parent, name, target->id);
    if (parent != newParent && sourceIsFolder != targetIsFolder) {
      countSubfolder(draft.edit(parent), sourceIsFolder ? -1 : +1);
      countSubfolder(draft.edit(newParent), sourceIsFolder ? +1 : -1);
    }
  } else {
    if (target) {
      BOUGH_TRY(dropName(draft, *target, Place(newParent, newName), orphans));
      const bool same = pristine && (target->node ? (**target).content.where == Content::Where::Base &&
                                                        (**target).content.base == pristine->ref
                                                  : target->stat.identity() == pristine->stat.identity());
      if (same) draft.keepPristine(target->id, pristine->content, pristine->stat);
      if (targetIsFolder) countSubfolder(draft.edit(newParent), -1);
    }
    unname(draft, from, name, source);
    if (sourceIsFolder && parent != newParent) {
      countSubfolder(draft.edit(parent), -1);
      countSubfolder(draft.edit(newParent), +1);
    }
  }
  draft.name(newParent, newName, source.id);
  BOUGH_TRY(draft.commit());
  moved(source.id, newParent, newName);
  if (exchange) moved(target->id, parent, name);
  keepOrphans(orphans);
  return Done{};
}

}  // namespace bough
