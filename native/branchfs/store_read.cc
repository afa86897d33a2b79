// Reading a branch, its point or its parent by path. See store.h.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "native/branchfs/node_compare.h"
#include "native/branchfs/store.h"

namespace bough {
namespace {

constexpr std::uint64_t kMaxPiece = std::uint64_t{8} << 20;

Error pathError(const Error& error, const std::string& path) {
  switch (error.errnum) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
      return Error{error.errnum, "E_NO_PATH", "There is nothing at " + path + "."};
    default:
      if (!error.code.empty()) return error;
      return Error{error.errnum, "E_IO", path + " cannot be read: " + std::strerror(error.errnum) + "."};
  }
}

bool sameFile(const Result<Identity>& now, const Identity& then) {
  return now && now->dev == then.dev && now->ino == then.ino && now->size == then.size && now->mtime == then.mtime;
}

}  // namespace

Result<std::shared_ptr<View>> Store::viewOn(const BranchId& id, Side side) {
  BOUGH_ASSIGN(const BranchPtr branch, find(id));
  if (side == Side::Branch) return view(id);
  if (side == Side::Point) {
    sidesOf(*branch);  // folds what it adopted into its point
    return std::shared_ptr<View>(View::ofPoint(branch, *base_, *objects_));
  }
  BranchId target;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(target, targetOf(*branch));
  }
  if (target != kBase) return view(target);
  return std::shared_ptr<View>(View::ofNodes(branch, Nodes(), *base_, *objects_));
}

Result<FileStat> Store::stat(const BranchId& id, Side side, const std::string& path) {
  BOUGH_ASSIGN(const auto on, viewOn(id, side));
  const auto found = on->resolve(path);
  if (!found) return pathError(found.error(), path);
  return FileStat{found->attr.kind, found->attr.size,  found->attr.mode,  found->attr.uid,
                  found->attr.gid,  found->attr.mtime, found->attr.ctime, found->target};
}

Result<std::vector<ListedName>> Store::readdir(const BranchId& id, Side side, const std::string& path) {
  BOUGH_ASSIGN(const auto on, viewOn(id, side));
  const auto items = on->listFolder(path);
  if (!items) return pathError(items.error(), path);
  std::vector<ListedName> names;
  for (const DirItem& item : *items) {
    if (item.name != "." && item.name != "..") names.push_back({item.name, item.kind});
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return names;
}

Result<ReadPiece> Store::read(const BranchId& id, Side side, const std::string& path, std::uint64_t offset,
                              std::uint64_t length) {
  if (length > kMaxPiece) {
    return Error{EINVAL, "E_TOO_BIG", "At most 8 MiB can be read at once: ask for smaller pieces."};
  }
  BOUGH_ASSIGN(const auto on, viewOn(id, side));
  const auto found = on->resolve(path);
  if (!found) return pathError(found.error(), path);
  if (found->attr.kind != Kind::File) {
    return Error{EINVAL, "E_NO_PATH", path + " is no regular file, so it has no bytes to read."};
  }
  ReadPiece piece;
  piece.size = found->attr.size;
  SharedFd fd;
  if (found->node && found->node->content.where == Content::Where::Object) {
    auto opened = objects_->get(found->node->content.object);
    if (!opened) return pathError(opened.error(), path);
    fd = *opened;
  } else if (found->inBase) {
    const bool settled = side == Side::Point && found->node && found->node->identity.known && found->ref.root == 0;
    if (settled && !sameFile(base_->identityOf(found->ref), found->node->identity)) {
      return Error{ESTALE, "E_NO_PATH",
                   path + " was changed in the base since the branch met it, and its text of that time is not kept."};
    }
    auto opened = base_->openFile(found->ref);
    if (!opened) return pathError(opened.error(), path);
    fd = std::make_shared<const UniqueFd>(std::move(*opened));
  }
  if (fd && offset < piece.size) {
    piece.data.resize(static_cast<std::size_t>(std::min(length, piece.size - offset)));
    std::size_t done = 0;
    while (done < piece.data.size()) {
      const ssize_t n =
          ::pread(fd->get(), piece.data.data() + done, piece.data.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return pathError(sys(errno), path);
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    piece.data.resize(done);
  }
  piece.eof = offset + piece.data.size() >= piece.size;
  return piece;
}

}  // namespace bough
