// See base_items.h.
#include "native/branchfs/base_items.h"

#include <sys/stat.h>

#include <map>
#include <utility>

namespace bough {
namespace {

bool coveredBy(const std::map<std::string, Item>& items, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const auto found = items.find(path.substr(0, slash));
    if (found != items.end() && !std::holds_alternative<Meta>(found->second)) return true;
  }
  return false;
}

const Xattrs& xattrsOf(const Node& node) {
  static const Xattrs kNone;
  return node.xattrs ? *node.xattrs : kNone;
}

}  // namespace

Result<std::vector<Item>> BaseItems::from(const Nodes& before, const std::vector<PathChange>& changes) {
  std::map<std::string, Item> items;
  // Removals of folders first: digests are taken before anything is read from below them.
  for (const PathChange& change : changes) {
    const bool goes = change.kind == ChangeKind::Deleted || change.kind == ChangeKind::Renamed;
    const std::string& path = change.was;  // below a renamed folder: where the base still has it
    if (!goes || coveredBy(items, path)) continue;
    BOUGH_ASSIGN(Expect expected, expect(path, change.before, false));
    items.insert_or_assign(path, Remove{path, std::move(expected)});
  }
  for (const PathChange& change : changes) {
    if (change.kind == ChangeKind::Deleted) continue;
    const std::string& path = change.path;
    const auto removed = items.find(path);
    if (removed == items.end() && coveredBy(items, path)) continue;
    if (change.kind == ChangeKind::Modified) {
      const bool folders = change.before->kind == Kind::Directory && change.after->kind == Kind::Directory;
      if (!change.what.any()) continue;  // other nodes, the same to everybody
      BOUGH_ASSIGN(Expect expected, expect(path, change.before, folders));
      if (folders) {
        items.emplace(path, folderMeta(change, std::move(expected)));
        continue;
      }
      BOUGH_ASSIGN(NewNode node, make(path));
      items.insert_or_assign(path, Put{path, std::move(expected), std::move(node)});
      continue;
    }
    Expect expected;  // Absent
    const NodePtr* there = before.find(walk(before, path).value_or(kNoNode));
    if (removed != items.end() && std::holds_alternative<Remove>(removed->second)) {
      expected = std::get<Remove>(removed->second).expect;
    } else if (there) {  // an empty folder that a renamed one replaces
      BOUGH_ASSIGN(expected, expect(path, *there, false));
    }
    BOUGH_ASSIGN(NewNode node, make(path));
    items.insert_or_assign(path, Put{path, std::move(expected), std::move(node)});
  }
  std::vector<Item> result;
  for (auto& [path, item] : items) {
    if (!coveredBy(items, path)) result.push_back(std::move(item));
  }
  return result;
}

Result<Expect> BaseItems::expect(const std::string& path, const NodePtr& before, bool stays) {
  Expect expected;
  expected.how = Expect::How::Unchanged;
  expected.kind = before->kind;
  expected.identity = before->identity;
  if (before->kind != Kind::Directory) {
    expected.attributes = FolderMeta{before->mode, before->uid, before->gid, std::nullopt, xattrsOf(*before)};
    return expected;
  }
  if (stays) {
    expected.how = Expect::How::SameFile;
    return expected;
  }
  BOUGH_ASSIGN(const UniqueFd fd, base_.openFolder(BaseRef{0, path}));
  BOUGH_ASSIGN(expected.digest, treeDigest(fd.get()));
  removesFolders_ = true;
  return expected;
}

Item BaseItems::folderMeta(const PathChange& change, Expect expected) {
  const Node& before = *change.before;
  const Node& after = *change.after;
  Meta meta{change.path, std::move(expected), {}, {}};
  if (change.what.mode) {
    meta.was.mode = before.mode;
    meta.becomes.mode = after.mode;
  }
  if (change.what.owner) {
    meta.was.uid = before.uid;
    meta.was.gid = before.gid;
    meta.becomes.uid = after.uid;
    meta.becomes.gid = after.gid;
  }
  if (change.what.xattr) {
    meta.was.xattrs = xattrsOf(before);
    meta.becomes.xattrs = xattrsOf(after);
  }
  return meta;
}

bool BaseItems::untouched(const AtPath& at) const {
  if (!at.node) return at.inBase;
  if (at.node->content.where != Content::Where::Base || at.node->timesHeld) return false;
  const auto stat = base_.stat(at.node->content.base);
  const auto xattrs = base_.xattrs(at.node->content.base);
  if (!stat || !xattrs) return false;
  return stat->mode == at.attr.mode && stat->uid == at.attr.uid && stat->gid == at.attr.gid &&
         (*xattrs ? **xattrs : Xattrs()) == xattrsOf(*at.node);
}

Result<NewNode> BaseItems::make(const std::string& path) {
  BOUGH_ASSIGN(const AtPath at, result_.resolve(path));
  NewNode node;
  node.kind = at.attr.kind;
  node.mode = at.attr.mode;
  node.uid = at.attr.uid;
  node.gid = at.attr.gid;
  node.rdev = at.attr.rdev;
  node.atime = at.attr.atime;
  node.mtime = at.attr.mtime;
  node.target = at.target;
  if (at.node) {
    node.xattrs = xattrsOf(*at.node);
  } else if (at.inBase) {
    BOUGH_ASSIGN(const auto xattrs, base_.xattrs(at.ref));
    if (xattrs) node.xattrs = *xattrs;
  }
  if (node.kind == Kind::Directory) {
    BOUGH_ASSIGN(const std::vector<DirItem> names, result_.listFolder(path));
    for (const DirItem& item : names) {
      if (item.name == "." || item.name == "..") continue;
      BOUGH_ASSIGN(NewNode child, make(joined(path, item.name)));
      node.children.emplace_back(item.name, std::move(child));
    }
    return node;
  }
  if (at.attr.nlink > 1) node.linkKey = at.attr.id;
  if (node.kind != Kind::File) return node;
  if (untouched(at)) {
    node.linkTo = at.node ? at.node->content.base : at.ref;
    return node;
  }
  const std::uint64_t size = at.attr.size;
  if (size == 0) return node;
  node.fill = [this, held = at.node, ref = at.ref, size](int fd) -> Result<> {
    SharedFd from;
    if (held) {
      BOUGH_ASSIGN(from, compare_.open(*held));
    } else {
      BOUGH_ASSIGN(UniqueFd opened, base_.openFile(ref));
      from = std::make_shared<const UniqueFd>(std::move(opened));
    }
    return copyFileData(from->get(), fd, size);
  };
  return node;
}

}  // namespace bough
