// See copy.h.
#include "native/branchfs/commit/copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "native/branchfs/commit/place.h"
#include "native/branchfs/commit/xattrs.h"
#include "native/common/unique_fd.h"

namespace bough::base_commit {

namespace {

Result<> copyRange(int fromFd, int toFd, off_t offset, off_t end) {
  while (offset < end) {
    off_t in = offset;
    off_t out = offset;
    const ssize_t done = ::copy_file_range(fromFd, &in, toFd, &out, static_cast<std::size_t>(end - offset), 0);
    if (done > 0) {
      offset += done;
      continue;
    }
    if (done == 0) return Done{};  // the file became shorter while it was read
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS && errno != EBADF)
      return sys(errno);
    std::array<char, 1U << 16U> buffer;
    while (offset < end) {
      const auto want = static_cast<std::size_t>(std::min<off_t>(end - offset, buffer.size()));
      const ssize_t got = ::pread(fromFd, buffer.data(), want, offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return sys(errno);
      if (got == 0) return Done{};
      for (ssize_t written = 0; written < got;) {
        const ssize_t n =
            ::pwrite(toFd, buffer.data() + written, static_cast<std::size_t>(got - written), offset + written);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys(errno);
        written += n;
      }
      offset += got;
    }
  }
  return Done{};
}

Result<> linkTo(const CopiedLinks::Place& first, int folderFd, const std::string& name) {
  if (::linkat(first.folderFd, first.path.c_str(), folderFd, name.c_str(), 0) != 0) return sys(errno);
  return Done{};
}

}  // namespace

Result<> copyData(int fromFd, int toFd) {
  if (::ioctl(toFd, FICLONE, fromFd) == 0) return Done{};
  struct stat st = {};
  if (::fstat(fromFd, &st) != 0) return sys(errno);
  off_t at = 0;
  while (at < st.st_size) {
    const off_t data = ::lseek(fromFd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    if (data < 0 && errno == EINVAL) {
      BOUGH_TRY(copyRange(fromFd, toFd, at, st.st_size));
      break;
    }
    if (data < 0) return sys(errno);
    const off_t hole = ::lseek(fromFd, data, SEEK_HOLE);
    if (hole < 0) return sys(errno);
    BOUGH_TRY(copyRange(fromFd, toFd, data, hole));
    at = hole;
  }
  if (::ftruncate(toFd, st.st_size) != 0) return sys(errno);
  return Done{};
}

Result<bool> setOwner(int folderFd, const std::string& name, std::uint32_t uid, std::uint32_t gid,
                      const std::string& path, std::vector<NotApplied>& notApplied) {
  struct stat st = {};
  const int flags = AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0);
  if (::fstatat(folderFd, name.c_str(), &st, flags) != 0) return sys(errno);
  if (st.st_uid == uid && st.st_gid == gid) return true;
  if (::fchownat(folderFd, name.c_str(), uid, gid, flags) == 0) return true;
  if (errno != EPERM && errno != EINVAL && errno != EACCES) return sys(errno);
  notApplied.push_back({path, "owner", std::strerror(errno)});
  // A group that the person is in may still be given.
  if (st.st_gid != gid && ::fchownat(folderFd, name.c_str(), static_cast<uid_t>(-1), gid, flags) != 0) {
    if (errno != EPERM && errno != EINVAL && errno != EACCES) return sys(errno);
  }
  return false;
}

Result<> setMode(int folderFd, const std::string& name, Kind kind, std::uint32_t mode, bool owned,
                 const std::string& path, std::vector<NotApplied>& notApplied) {
  if (kind == Kind::Symlink) return Done{};
  std::uint32_t allowed = mode;
  // A program that runs as its owner must not come to run as somebody else.
  if (!owned && kind != Kind::Directory) allowed &= ~06000U;
  const int flags = AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0);
  struct stat st = {};
  if (::fchmodat(folderFd, name.empty() ? "." : name.c_str(), allowed, 0) != 0) {
    if (errno != EPERM && errno != EACCES) return sys(errno);
    const int why = errno;
    if (::fstatat(folderFd, name.c_str(), &st, flags) != 0) return sys(errno);
    if ((st.st_mode & 07777U) != mode) notApplied.push_back({path, "mode", std::strerror(why)});
    return Done{};
  }
  if (::fstatat(folderFd, name.c_str(), &st, flags) != 0) return sys(errno);
  if ((st.st_mode & 07777U) != mode)
    notApplied.push_back({path, "mode", "set-id bits need the file's owner and group"});
  return Done{};
}

Result<> setAttributes(int folderFd, const std::string& name, Kind kind, const Attributes& attributes,
                       const Xattrs& xattrs, const std::string& path, std::vector<NotApplied>& notApplied) {
  BOUGH_ASSIGN(const bool owned, setOwner(folderFd, name, attributes.uid, attributes.gid, path, notApplied));
  BOUGH_TRY(writeXattrs(folderFd, name, xattrs, path, notApplied));
  BOUGH_TRY(setMode(folderFd, name, kind, attributes.mode, owned, path, notApplied));
  return setTimes(folderFd, name, &attributes.atime, attributes.mtime);
}

Result<bool> makeSpecial(int folderFd, const std::string& name, Kind kind, std::uint64_t rdev, const std::string& path,
                         std::vector<NotApplied>& notApplied) {
  const mode_t type = kind == Kind::Fifo         ? S_IFIFO
                      : kind == Kind::Socket     ? S_IFSOCK
                      : kind == Kind::CharDevice ? S_IFCHR
                                                 : S_IFBLK;
  if (::mknodat(folderFd, name.c_str(), type | 0600U, static_cast<dev_t>(rdev)) == 0) return true;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EINVAL) return sys(errno);
  notApplied.push_back({path, "node", std::strerror(errno)});
  return false;
}

Result<> copyTree(int fromFolder, const std::string& name, const CopyTarget& to, CopiedLinks& links,
                  const std::string& path, bool durable, std::vector<NotApplied>& notApplied) {
  BOUGH_ASSIGN(const Found from, look(fromFolder, name));
  if (!from.exists) return sys(ENOENT);
  const auto [toFolderPath, toName] = splitPath(to.path);
  BOUGH_ASSIGN(const UniqueFd toFolder, openFolder(to.rootFd, toFolderPath, O_PATH));
  const std::pair<std::uint64_t, std::uint64_t> inode{from.identity.dev, from.identity.ino};
  if (from.kind != Kind::Directory && from.nlink > 1) {
    if (const auto first = links.places.find(inode); first != links.places.end()) {
      return linkTo(first->second, toFolder.get(), toName);
    }
  }

  UniqueFd made;  // open from before its mode may forbid that
  switch (from.kind) {
    case Kind::Directory: {
      if (::mkdirat(toFolder.get(), toName.c_str(), 0700) != 0) return sys(errno);
      const UniqueFd source(::openat(fromFolder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!source) return sys(errno);
      BOUGH_ASSIGN(const std::vector<std::string> below, names(source.get()));
      for (const std::string& child : below) {
        BOUGH_TRY(copyTree(source.get(), child, {to.rootFd, joinPath(to.path, child)}, links, joinPath(path, child),
                           durable, notApplied));
      }
      made.reset(::openat(toFolder.get(), toName.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!made) return sys(errno);
      break;
    }
    case Kind::File: {
      const UniqueFd source(::openat(fromFolder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (!source) return sys(errno);
      made.reset(::openat(toFolder.get(), toName.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!made) return sys(errno);
      BOUGH_TRY(copyData(source.get(), made.get()));
      break;
    }
    case Kind::Symlink: {
      std::string target(PATH_MAX, '\0');
      const ssize_t size = ::readlinkat(fromFolder, name.c_str(), target.data(), target.size());
      if (size < 0) return sys(errno);
      target.resize(static_cast<std::size_t>(size));
      if (::symlinkat(target.c_str(), toFolder.get(), toName.c_str()) != 0) return sys(errno);
      break;
    }
    default: {
      BOUGH_ASSIGN(const bool allowed, makeSpecial(toFolder.get(), toName, from.kind, from.rdev, path, notApplied));
      if (!allowed) return Done{};
    }
  }

  BOUGH_ASSIGN(const Xattrs xattrs, readXattrs(fromFolder, name));
  const Attributes attributes{from.mode, from.uid, from.gid, from.atime, from.identity.mtime};
  BOUGH_TRY(setAttributes(toFolder.get(), toName, from.kind, attributes, xattrs, path, notApplied));
  if (durable && made && ::fsync(made.get()) != 0) return sys(errno);
  if (from.kind != Kind::Directory && from.nlink > 1) links.places[inode] = {to.rootFd, to.path};
  return Done{};
}

}  // namespace bough::base_commit
