// See stage.h.
#include "native/branchfs/commit/stage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "native/branchfs/commit/place.h"

namespace bough::base_commit {

namespace {

Attributes attributesOf(const NewNode& node) { return {node.mode, node.uid, node.gid, node.atime, node.mtime}; }

/// Errors of link(2) after which a copy is the way: other file system, no right to link, too many links, no links
/// there.
bool linkImpossible(int errnum) {
  return errnum == EXDEV || errnum == EPERM || errnum == EACCES || errnum == EMLINK || errnum == EOPNOTSUPP ||
         errnum == ENOSYS || errnum == EINVAL;
}

}  // namespace

Result<bool> Stager::make(int folderFd, const std::string& name, const NewNode& node, const std::string& path) {
  rootFd_ = folderFd;
  return makeAt(name, node, path);
}

Result<bool> Stager::makeAt(const std::string& below, const NewNode& node, const std::string& path) {
  errorPath = path;
  const auto [folderPath, name] = splitPath(below);
  BOUGH_ASSIGN(const UniqueFd folder, openFolder(rootFd_, folderPath, O_PATH));
  if (node.kind == Kind::Directory) return makeFolder(folder.get(), name, below, node, path);
  if (node.linkTo) {
    BOUGH_TRY(makeLink(folder.get(), name, below, *node.linkTo, path));
    return true;
  }
  if (node.linkKey != 0) {
    BOUGH_ASSIGN(const bool linked, linkToFirst(node.linkKey, folder.get(), name));
    if (linked) return true;
  }
  switch (node.kind) {
    case Kind::File:
      BOUGH_TRY(makeFile(folder.get(), name, node, path));
      break;
    case Kind::Symlink:
      if (::symlinkat(node.target.c_str(), folder.get(), name.c_str()) != 0) return sys(errno);
      BOUGH_TRY(setAttributes(folder.get(), name, node.kind, attributesOf(node), node.xattrs, path, notApplied));
      break;
    default: {
      BOUGH_ASSIGN(const bool allowed, makeSpecial(folder.get(), name, node.kind, node.rdev, path, notApplied));
      if (!allowed) return false;
      BOUGH_TRY(setAttributes(folder.get(), name, node.kind, attributesOf(node), node.xattrs, path, notApplied));
    }
  }
  if (node.linkKey != 0) firsts_[node.linkKey] = {rootFd_, below};
  return true;
}

Result<bool> Stager::makeFolder(int parentFd, const std::string& name, const std::string& below, const NewNode& node,
                                const std::string& path) {
  if (::mkdirat(parentFd, name.c_str(), 0700) != 0) return sys(errno);
  for (const auto& [childName, child] : node.children) {
    BOUGH_TRY(makeAt(joinPath(below, childName), child, joinPath(path, childName)));
  }
  errorPath = path;
  const UniqueFd folder(::openat(parentFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return sys(errno);
  BOUGH_TRY(setAttributes(parentFd, name, node.kind, attributesOf(node), node.xattrs, path, notApplied));
  if (syncEach_) BOUGH_TRY(syncFolder(folder.get()));
  return true;
}

Result<> Stager::makeFile(int parentFd, const std::string& name, const NewNode& node, const std::string& path) {
  const UniqueFd file(::openat(parentFd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return sys(errno);
  if (node.fill) BOUGH_TRY(node.fill(file.get()));
  BOUGH_TRY(setAttributes(parentFd, name, node.kind, attributesOf(node), node.xattrs, path, notApplied));
  if (syncEach_ && ::fsync(file.get()) != 0) return sys(errno);
  return Done{};
}

Result<> Stager::makeLink(int parentFd, const std::string& name, const std::string& below, const BaseRef& from,
                          const std::string& path) {
  BOUGH_ASSIGN(const auto source, resolve_(from));
  if (::linkat(source.first.get(), source.second.c_str(), parentFd, name.c_str(), 0) == 0) return Done{};
  if (!linkImpossible(errno)) return sys(errno);
  return copyTree(source.first.get(), source.second, {rootFd_, below}, copied_, path, syncEach_, notApplied);
}

Result<bool> Stager::linkToFirst(std::uint64_t key, int parentFd, const std::string& name) {
  const auto first = firsts_.find(key);
  if (first == firsts_.end()) return false;
  const auto [firstFolder, firstName] = splitPath(first->second.path);
  BOUGH_ASSIGN(const UniqueFd folder, openFolder(first->second.folderFd, firstFolder, O_PATH));
  if (::linkat(folder.get(), firstName.c_str(), parentFd, name.c_str(), 0) == 0) return true;
  // The first one is on another file system (a mount below the base), or links end here: a file of its own.
  if (linkImpossible(errno)) return false;
  return sys(errno);
}

std::size_t countNodes(const NewNode& node) {
  std::size_t count = 1;
  for (const auto& [name, child] : node.children) count += countNodes(child);
  return count;
}

bool usesLinks(const NewNode& node) {
  if (node.linkTo) return true;
  for (const auto& [name, child] : node.children) {
    if (usesLinks(child)) return true;
  }
  return false;
}

bool sharesFiles(const NewNode& node) {
  if (node.linkTo || node.linkKey != 0) return true;
  for (const auto& [name, child] : node.children) {
    if (sharesFiles(child)) return true;
  }
  return false;
}

}  // namespace bough::base_commit
