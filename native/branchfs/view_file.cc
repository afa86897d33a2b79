// View: open handles, reading and writing data. See view.h. Bytes move under the shared lock (a branch point waits for
// the write that is going on, so both sides see whole writes); data that the branch does not own yet are copied first,
// without a lock (view_copy_up.cc).
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "native/branchfs/open_file.h"
#include "native/branchfs/view_data.h"
#include "native/branchfs/view_draft.h"

namespace bough {

namespace {

bool writes(std::uint32_t flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// How much is copied in one go while the lock is held.
constexpr std::size_t kCopyPiece = 4U << 20;

Result<std::size_t> copyPiece(int from, std::uint64_t fromOffset, int to, std::uint64_t toOffset, std::size_t length) {
  auto readAt = static_cast<off_t>(fromOffset);
  auto writeAt = static_cast<off_t>(toOffset);
  for (;;) {
    ssize_t done = ::copy_file_range(from, &readAt, to, &writeAt, length, 0);
    if (done >= 0) return static_cast<std::size_t>(done);
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EOPNOTSUPP && errno != ENOSYS) return sys(errno);
    break;
  }
  std::vector<char> buffer(std::min<std::size_t>(length, 1U << 20));
  ssize_t got = ::pread(from, buffer.data(), buffer.size(), readAt);
  if (got < 0) return sys(errno);
  ssize_t put = got == 0 ? 0 : ::pwrite(to, buffer.data(), static_cast<std::size_t>(got), writeAt);
  if (put < 0) return sys(errno);
  return static_cast<std::size_t>(put);
}

}  // namespace

Handle View::addHandle(std::shared_ptr<OpenFile> file) {
  {
    std::lock_guard guard(knownLock_);
    known_[file->id].handles++;
  }
  Handle handle = nextHandle_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock guard(handlesLock_);
  files_.emplace(handle, std::move(file));
  return handle;
}

Result<std::shared_ptr<OpenFile>> View::fileOf(Handle handle) {
  std::shared_lock guard(handlesLock_);
  auto file = files_.find(handle);
  if (file == files_.end()) return sys(EBADF);
  return file->second;
}

void View::release(Handle handle) {
  std::shared_ptr<OpenFile> file;
  {
    std::unique_lock guard(handlesLock_);
    auto at = files_.find(handle);
    if (at == files_.end()) return;
    file = std::move(at->second);
    files_.erase(at);
  }
  dropKnown(file->id, 0, 1);
}

/// Where a node's data are now. A virtual node: Where::Base without a place.
View::Data View::dataOf(NodeId id) {
  Data data;
  const NodePtr* node = nodes().find(id);
  if (!node && source_ == Source::Tree) {
    auto orphan = branch_->orphans.find(id);
    if (orphan != branch_->orphans.end()) node = &orphan->second;
  }
  if (!node) {
    data.content.where = Content::Where::Base;
    data.isVirtual = true;
    return data;
  }
  data.content = (*node)->content;
  data.own = source_ == Source::Tree && data.content.where == Content::Where::Object &&
             data.content.epoch == branch_->tree.epoch;
  return data;
}

/// A descriptor of a handle's data; null for a file that has none.
Result<SharedFd> View::fdOf(OpenFile& file, const Data& data) {
  Content content = data.content;
  if (content.where == Content::Where::Nothing) return SharedFd();
  if (data.isVirtual) {
    auto [last, fd] = file.last();
    // What was opened stays open, even if the base has another file in its place by now.
    if (fd && last.where == Content::Where::Base) return fd;
    auto ref = refOf(file.id);
    if (!ref) {
      if (fd) return fd;
      return ref.error();
    }
    content.base = std::move(*ref);
  }
  if (SharedFd fd = file.remembered(content)) return fd;
  SharedFd fd;
  if (content.where == Content::Where::Object) {
    BOUGH_ASSIGN(fd, objects_.get(content.object));
  } else {
    auto opened = base_.openFile(content.base);
    if (!opened) {
      auto [last, lastFd] = file.last();
      if (lastFd && last.where == Content::Where::Base) return lastFd;
      return opened.error();
    }
    fd = std::make_shared<const UniqueFd>(std::move(*opened));
  }
  file.remember(content, fd);
  return fd;
}

Result<Opened> View::openFound(const Found& found, std::uint32_t flags) {
  switch (found.kind()) {
    case Kind::File:
      break;
    case Kind::Directory:
      return sys(EISDIR);
    case Kind::Symlink:
      return sys(ELOOP);
    default:
      return sys(ENXIO);
  }
  if (writes(flags)) BOUGH_TRY(mayChange());
  auto file = std::make_shared<OpenFile>(found.id, flags);
  Opened opened;
  Content content;
  if (found.node) {
    content = (*found).content;
  } else {
    content.where = Content::Where::Base;
    content.base = found.ref;
  }
  if (content.where == Content::Where::Object) {
    BOUGH_ASSIGN(SharedFd fd, objects_.get(content.object));
    file->remember(content, fd);
  } else if (content.where == Content::Where::Base) {
    BOUGH_ASSIGN(UniqueFd fd, base_.openFile(content.base));
    BOUGH_ASSIGN(BaseStat stat, statOf(fd.get()));
    file->remember(content, std::make_shared<const UniqueFd>(std::move(fd)));
    std::lock_guard guard(knownLock_);
    Known& known = known_[found.id];
    opened.keepCache = known.seenMtime == stat.mtime && known.seenSize == stat.size;
    known.seenMtime = stat.mtime;
    known.seenSize = stat.size;
  }
  opened.handle = addHandle(std::move(file));
  return opened;
}

Result<Opened> View::open(NodeId id, std::uint32_t flags) {
  Opened opened;
  {
    std::shared_lock lock(branch_->lock);
    BOUGH_ASSIGN(Found found, find(id));
    BOUGH_ASSIGN(opened, openFound(found, flags));
  }
  if ((flags & O_TRUNC) && writes(flags)) {
    auto cut = truncate(id, nullptr, 0);
    if (!cut) {
      release(opened.handle);
      return cut.error();
    }
  }
  return opened;
}

Result<std::pair<Looked, Opened>> View::create(const Caller& caller, NodeId parent, std::string_view name,
                                               std::uint32_t mode, std::uint32_t flags) {
  if (name.size() > 255) return sys(ENAMETOOLONG);
  {
    std::shared_lock lock(branch_->lock);
    BOUGH_TRY(mayChange());
  }
  ObjectId object = branch_->log->newObject();
  BOUGH_ASSIGN(SharedFd fd, objects_.create(object));
  Node node;
  node.kind = Kind::File;
  node.mode = mode & 07777U;
  auto made = make(caller, parent, name, std::move(node), object);
  if (!made) {
    (void)objects_.remove(object);
    if (made.error().errnum != EEXIST || (flags & O_EXCL)) return made.error();
    // It came into being since the kernel looked.
    BOUGH_ASSIGN(Looked looked, lookup(parent, name));
    auto opened = open(looked.attr.id, flags);
    if (!opened) {
      forget(looked.attr.id, 1);
      return opened.error();
    }
    return std::pair(looked, *opened);
  }
  auto file = std::make_shared<OpenFile>(made->attr.id, flags);
  Content content;
  content.where = Content::Where::Object;
  content.object = object;
  content.lease = objects_.lease(object);
  file->remember(content, fd);
  Opened opened;
  opened.handle = addHandle(std::move(file));
  return std::pair(*made, opened);
}

Result<std::pair<Looked, Opened>> View::tmpfile(const Caller& caller, NodeId parent, std::uint32_t mode,
                                                std::uint32_t flags) {
  ObjectId object = branch_->log->newObject();
  NodeId id = branch_->log->newNode();
  auto node = std::make_shared<Node>();
  node->kind = Kind::File;
  node->mode = mode & 07777U;
  node->uid = caller.uid;
  node->gid = caller.gid;
  node->nlink = 0;
  node->atime = node->mtime = node->ctime = node->btime = presentTime();
  node->content.where = Content::Where::Object;
  node->content.object = object;
  std::unique_lock lock(branch_->lock);
  BOUGH_TRY(mayChange());
  BOUGH_ASSIGN(Found folder, find(parent));
  if (folder.kind() != Kind::Directory) return sys(ENOTDIR);
  std::uint32_t folderMode = folder.node ? (*folder).mode : folder.stat.mode;
  if (folderMode & S_ISGID) node->gid = folder.node ? (*folder).gid : folder.stat.gid;
  BOUGH_ASSIGN(SharedFd fd, objects_.create(object));
  node->content.lease = objects_.lease(object);
  node->content.epoch = branch_->tree.epoch;
  auto file = std::make_shared<OpenFile>(id, flags);
  file->remember(node->content, fd);
  const NodePtr& kept = branch_->orphans[id] = std::move(node);
  {
    std::lock_guard guard(knownLock_);
    Known& known = known_[id];
    known.lookups = 1;
    known.orphan = true;
    known.linkable = !(flags & O_EXCL);
  }
  Found found;
  found.id = id;
  found.node = &kept;
  BOUGH_ASSIGN(Attr attr, attrOf(found));
  Opened opened;
  opened.handle = addHandle(std::move(file));
  return std::pair(Looked{attr, Keep::Forever}, opened);
}

Result<std::size_t> View::read(Handle handle, std::uint64_t offset, std::span<std::byte> out) {
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> file, fileOf(handle));
  SharedFd fd;
  {
    std::shared_lock lock(branch_->lock);
    BOUGH_ASSIGN(fd, fdOf(*file, dataOf(file->id)));
  }
  std::size_t done = 0;
  while (fd && done < out.size()) {
    ssize_t got = ::pread(fd->get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      if (done > 0) break;
      return sys(errno);
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::size_t> View::write(Handle handle, std::uint64_t offset, std::span<const std::byte> data, bool append) {
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> file, fileOf(handle));
  if (!writes(file->flags)) return sys(EBADF);
  return withOwnData(file->id, file.get(), kWholeFile, [&](int fd) -> Result<std::size_t> {
    std::size_t done = 0;
    while (done < data.size()) {
      ssize_t put = 0;
      if (append) {
        iovec piece{const_cast<std::byte*>(data.data()) + done, data.size() - done};
        put = ::pwritev2(fd, &piece, 1, 0, RWF_APPEND);
      } else {
        put = ::pwrite(fd, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
      }
      if (put < 0) {
        if (errno == EINTR) continue;
        if (done > 0) break;  // what fits is written, as write(2) does
        return sys(errno);
      }
      done += static_cast<std::size_t>(put);
    }
    return done;
  });
}

Result<> View::fsync(Handle handle, bool dataOnly) {
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> file, fileOf(handle));
  SharedFd fd;
  {
    std::shared_lock lock(branch_->lock);
    Data data = dataOf(file->id);
    if (data.content.where == Content::Where::Object) {
      BOUGH_ASSIGN(fd, fdOf(*file, data));
    }
  }
  if (fd && (dataOnly ? ::fdatasync(fd->get()) : ::fsync(fd->get())) != 0) return sys(errno);
  if (source_ != Source::Tree) return Done{};
  return branch_->log->sync();
}

Result<> View::fsyncdir(NodeId) {
  if (source_ != Source::Tree) return Done{};
  return branch_->log->sync();
}

Result<> View::fallocate(Handle handle, std::uint32_t mode, std::uint64_t offset, std::uint64_t length) {
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> file, fileOf(handle));
  if (!writes(file->flags)) return sys(EBADF);
  return withOwnData(file->id, file.get(), kWholeFile, [&](int fd) -> Result<> {
    while (::fallocate(fd, static_cast<int>(mode), static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
      if (errno != EINTR) return sys(errno);
    }
    return Done{};
  });
}

Result<std::uint64_t> View::lseek(Handle handle, std::uint64_t offset, int whence) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return sys(EINVAL);
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> file, fileOf(handle));
  SharedFd fd;
  {
    std::shared_lock lock(branch_->lock);
    BOUGH_ASSIGN(fd, fdOf(*file, dataOf(file->id)));
  }
  if (!fd) return sys(ENXIO);
  off_t at = ::lseek(fd->get(), static_cast<off_t>(offset), whence);
  if (at < 0) return sys(errno);
  return static_cast<std::uint64_t>(at);
}

Result<std::size_t> View::copyRange(Handle from, std::uint64_t fromOffset, Handle to, std::uint64_t toOffset,
                                    std::size_t length) {
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> source, fileOf(from));
  BOUGH_ASSIGN(std::shared_ptr<OpenFile> target, fileOf(to));
  if (!writes(target->flags)) return sys(EBADF);
  std::size_t done = 0;
  while (done < length) {
    // Piece by piece, so that a branch point need not wait for all of it.
    auto piece = withOwnData(target->id, target.get(), kWholeFile, [&](int fd) -> Result<std::size_t> {
      BOUGH_ASSIGN(SharedFd sourceFd, fdOf(*source, dataOf(source->id)));
      if (!sourceFd) return std::size_t{0};
      return copyPiece(sourceFd->get(), fromOffset + done, fd, toOffset + done, std::min(length - done, kCopyPiece));
    });
    if (!piece) {
      if (done > 0) break;
      return piece.error();
    }
    if (*piece == 0) break;
    done += *piece;
  }
  return done;
}

}  // namespace bough
