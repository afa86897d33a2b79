// See undo_plan.h.
#include "native/branchfs/commit/undo_plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "native/branchfs/commit/place.h"
#include "native/branchfs/commit/xattrs.h"

namespace bough::base_commit {

namespace {

using Type = PlannedItem::Type;

/// A kept thing as a node: files are linked (so that they stay kept as well), folders are made again.
Result<NewNode> nodeFromKept(int folderFd, const std::string& name, const BaseRef& ref) {
  BOUGH_ASSIGN(const Found found, look(folderFd, name));
  if (!found.exists) {
    return Error{ENOENT, "E_IO",
                 "What the commit kept for undo is not complete: its folder commit/ in the store was changed by hand. "
                 "It cannot be undone."};
  }
  NewNode node;
  node.kind = found.kind;
  if (found.kind != Kind::Directory) {
    node.linkTo = ref;
    return node;
  }
  node.mode = found.mode;
  node.uid = found.uid;
  node.gid = found.gid;
  node.atime = found.atime;
  node.mtime = found.identity.mtime;
  BOUGH_ASSIGN(node.xattrs, readXattrs(folderFd, name));
  const UniqueFd folder(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return sys(errno);
  BOUGH_ASSIGN(const std::vector<std::string> below, names(folder.get()));
  for (const std::string& child : below) {
    BOUGH_ASSIGN(NewNode made, nodeFromKept(folder.get(), child, {ref.root, joinPath(ref.path, child)}));
    node.children.emplace_back(child, std::move(made));
  }
  return node;
}

/// What a Meta asked for and got: what the system refused need not be there now.
FolderMeta whatWasSet(const PlannedItem& item, const std::vector<NotApplied>& notApplied) {
  FolderMeta set = item.becomes;
  set.mtime.reset();
  for (const NotApplied& refused : notApplied) {
    if (refused.path != item.path) continue;
    if (refused.what == "owner") {
      set.uid.reset();
      set.gid.reset();
    }
    if (refused.what == "mode") set.mode.reset();
    if (refused.what.starts_with("xattr ")) set.xattrs.reset();
  }
  return set;
}

Expect sameFolder(const Identity& identity) {
  Expect expect;
  expect.how = Expect::How::SameFile;
  expect.kind = Kind::Directory;
  expect.identity = identity;
  return expect;
}

Expect expectLeft(const ItemOutcome& left) {
  Expect expect;
  expect.how = Expect::How::Unchanged;
  expect.kind = left.kind;
  expect.identity = left.identity;
  expect.attributes = left.attributes;
  expect.digest = left.digest;
  return expect;
}

/// The folders that the transaction changed, with the mtime they had, where nobody gave them another one since.
Result<> planFolderTimes(const Journal& undone, Folders& folders, std::set<std::string>& withMeta,
                         std::vector<Item>& items) {
  for (const PlannedFolder& folder : undone.prepared->folders) {
    if (withMeta.contains(folder.path)) continue;
    auto fd = folders.open(folder.path);
    if (!fd) continue;  // gone: a conflict that the items tell of
    BOUGH_ASSIGN(const Found now, look((*fd)->get(), ""));
    bool untouched = false;
    for (const auto& [path, mtime] : undone.applied->folders) {
      if (path == folder.path) untouched = now.exists && now.identity.mtime == mtime;
    }
    if (!untouched) continue;
    Meta meta;
    meta.path = folder.path;
    meta.expect = sameFolder(now.identity);
    meta.becomes.mtime = folder.identity.mtime;
    items.emplace_back(std::move(meta));
  }
  return Done{};
}

}  // namespace

Result<std::vector<Item>> planUndo(const Journal& undone, int keptFd, Folders& folders) {
  const Prepared& prepared = *undone.prepared;
  const Applied& applied = *undone.applied;
  std::vector<Item> items;
  std::set<std::string> withMeta;
  for (std::size_t i = 0; i < prepared.items.size(); ++i) {
    const PlannedItem& was = prepared.items[i];
    const ItemOutcome& left = applied.items[i];
    if (was.type == Type::Meta) {
      Meta meta;
      meta.path = was.path;
      meta.expect = sameFolder(was.old);
      meta.was = whatWasSet(was, applied.notApplied);
      meta.becomes = was.oldMeta;
      withMeta.insert(was.path);
      items.emplace_back(std::move(meta));
      continue;
    }
    if (left.leftOut) continue;
    if (left.root == 0) {
      if (was.type == Type::Put) items.emplace_back(Remove{was.path, expectLeft(left)});
      continue;
    }
    Put put;
    put.path = was.path;
    if (was.type == Type::Put) put.expect = expectLeft(left);
    BOUGH_ASSIGN(put.node, nodeFromKept(keptFd, std::to_string(i), {left.root, ""}));
    items.emplace_back(std::move(put));
  }
  BOUGH_TRY(planFolderTimes(undone, folders, withMeta, items));
  return items;
}

}  // namespace bough::base_commit
