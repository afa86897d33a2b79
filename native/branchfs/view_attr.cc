// View: changing attributes, and xattrs. See view.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>

#include "native/branchfs/open_file.h"
#include "native/branchfs/view_draft.h"

namespace bough {

namespace {

constexpr std::size_t kMaxXattrName = 255;
constexpr std::size_t kMaxXattrValue = 65536;

timespec toTimespec(const std::optional<Time>& time, bool now) {
  if (now) return timespec{0, UTIME_NOW};
  if (!time) return timespec{0, UTIME_OMIT};
  return timespec{time->sec, static_cast<long>(time->nsec)};
}

/// Whether a name may be seen and set. Access control lists are the kernel's to keep, and it does not keep them for us.
Result<> checkXattrName(Kind kind, std::string_view name) {
  if (name.empty() || name.size() > kMaxXattrName) return sys(ERANGE);
  if (name.starts_with("user.")) {
    if (kind != Kind::File && kind != Kind::Directory) return sys(EPERM);
    return Done{};
  }
  if (name.starts_with("trusted.") || name.starts_with("security.")) return Done{};
  return sys(EOPNOTSUPP);
}

}  // namespace

Result<Looked> View::setattr(const Caller& caller, NodeId id, std::optional<Handle> handle, const SetAttr& change) {
  std::shared_ptr<OpenFile> file;
  if (handle) {
    auto open = fileOf(*handle);
    if (open) file = *open;
  }
  if (change.size) BOUGH_TRY(truncate(id, file.get(), *change.size));
  const bool times = change.atime || change.mtime || change.atimeNow || change.mtimeNow;
  const bool dropSetId = (change.uid || change.gid || (change.size && caller.uid != 0)) && !change.mode;
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found found, find(id));
  bool ownTimes = false;
  if (times && found.node && (*found).content.where == Content::Where::Object &&
      (*found).content.epoch == branch_->tree.epoch && !(*found).timesHeld) {
    // The data file is this branch's own: its times are the file's times.
    BOUGH_ASSIGN(SharedFd fd, objects_.get((*found).content.object));
    timespec values[2] = {toTimespec(change.atime, change.atimeNow), toTimespec(change.mtime, change.mtimeNow)};
    if (::futimens(fd->get(), values) != 0) return sys(errno);
    branch_->writes.fetch_add(1, std::memory_order_relaxed);
    ownTimes = true;
  }
  std::uint32_t mode = found.node ? (*found).mode : found.stat.mode;
  std::uint32_t newMode = change.mode ? *change.mode & 07777U : mode;
  if (dropSetId && found.kind() == Kind::File) {
    newMode &= ~static_cast<std::uint32_t>(S_ISUID);
    if (mode & S_IXGRP) newMode &= ~static_cast<std::uint32_t>(S_ISGID);
  }
  if ((times && !ownTimes) || change.mode || change.uid || change.gid || newMode != mode) {
    BOUGH_ASSIGN(Attr before, attrOf(found));
    const bool orphan = found.node && (*found).nlink == 0;
    Draft draft(*this);
    std::shared_ptr<Node> orphanNode = orphan ? std::make_shared<Node>(*found) : nullptr;
    if (!orphan) BOUGH_TRY(draft.settle(id));
    Node& node = orphan ? *orphanNode : draft.edit(id);
    node.mode = newMode;
    if (change.uid) node.uid = *change.uid;
    if (change.gid) node.gid = *change.gid;
    node.ctime = presentTime();
    if (times && !ownTimes) {
      node.atime = change.atimeNow ? node.ctime : change.atime.value_or(before.atime);
      node.mtime = change.mtimeNow ? node.ctime : change.mtime.value_or(before.mtime);
      node.timesHeld = node.kind == Kind::File && node.content.where != Content::Where::Nothing;
    }
    if (orphan) {
      branch_->orphans[id] = std::move(orphanNode);
    } else {
      BOUGH_TRY(draft.commit());
    }
    BOUGH_ASSIGN(found, find(id));
  }
  BOUGH_ASSIGN(Attr attr, attrOf(found));
  return Looked{attr, keepOf(found, kNoNode)};
}

Result<std::string> View::getxattr(NodeId id, std::string_view name) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, find(id));
  return xattrOf(found, name);
}

Result<std::string> View::xattrOf(const Found& found, std::string_view name) {
  BOUGH_TRY(checkXattrName(Kind::File, name));
  if (!found.node) return base_.xattr(found.ref, std::string(name));
  if (!(*found).xattrs) return sys(ENODATA);
  auto value = (*found).xattrs->find(std::string(name));
  if (value == (*found).xattrs->end()) return sys(ENODATA);
  return value->second;
}

Result<std::vector<std::string>> View::listxattr(NodeId id) {
  std::shared_lock lock(branch_->lock);
  BOUGH_ASSIGN(Found found, find(id));
  return xattrNamesOf(found);
}

Result<std::vector<std::string>> View::xattrNamesOf(const Found& found) {
  std::vector<std::string> names;
  if (!found.node) {
    auto all = base_.xattrNames(found.ref);
    if (!all && all.error().errnum != EOPNOTSUPP) return all.error();
    if (all) names = std::move(*all);
  } else if ((*found).xattrs) {
    for (const auto& [name, value] : *(*found).xattrs) names.push_back(name);
  }
  std::erase_if(names, [](const std::string& name) { return !checkXattrName(Kind::File, name); });
  return names;
}

/// Gives a node other xattrs. `edit` changes the map or answers an error.
template <typename Edit>
Result<> View::editXattrs(NodeId id, std::string_view name, Edit&& edit) {
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found found, find(id));
  BOUGH_TRY(checkXattrName(found.kind(), name));
  std::shared_ptr<const Xattrs> before;
  if (found.node) {
    before = (*found).xattrs;
  } else {
    BOUGH_ASSIGN(before, base_.xattrs(found.ref));
  }
  auto after = before ? std::make_shared<Xattrs>(*before) : std::make_shared<Xattrs>();
  BOUGH_TRY(edit(*after));
  if (found.node && (*found).nlink == 0) {
    auto node = std::make_shared<Node>(*found);
    node->xattrs = std::move(after);
    node->ctime = presentTime();
    branch_->orphans[id] = std::move(node);
    return Done{};
  }
  Draft draft(*this);
  BOUGH_TRY(draft.settle(id));
  Node& node = draft.edit(id);
  node.xattrs = after->empty() ? nullptr : std::move(after);
  node.ctime = presentTime();
  return draft.commit();
}

Result<> View::setxattr(NodeId id, std::string_view name, std::string_view value, int flags) {
  if (flags & ~(XATTR_CREATE | XATTR_REPLACE)) return sys(EINVAL);
  if (value.size() > kMaxXattrValue) return sys(E2BIG);
  return editXattrs(id, name, [&](Xattrs& xattrs) -> Result<> {
    auto [at, isNew] = xattrs.try_emplace(std::string(name));
    if (!isNew && (flags & XATTR_CREATE)) return sys(EEXIST);
    if (isNew && (flags & XATTR_REPLACE)) return sys(ENODATA);
    at->second = value;
    return Done{};
  });
}

Result<> View::removexattr(NodeId id, std::string_view name) {
  return editXattrs(id, name, [&](Xattrs& xattrs) -> Result<> {
    if (xattrs.erase(std::string(name)) == 0) return sys(ENODATA);
    return Done{};
  });
}

}  // namespace bough
