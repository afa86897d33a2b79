// See place.h.
#include "native/branchfs/commit/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bough::base_commit {

namespace {

constexpr std::size_t kOpenFolders = 64;
// openat2 takes PATH_MAX bytes at most; longer paths are opened in pieces.
constexpr std::size_t kPieceBytes = 4000;

Time timeOf(const struct statx_timestamp& t) { return Time{t.tv_sec, t.tv_nsec}; }

Result<UniqueFd> openPiece(int rootFd, const std::string& path, int flags) {
  struct open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags) | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // RESOLVE_BENEATH answers EAGAIN while anything on the system is being renamed.
  for (int tries = 0;; ++tries) {
    const long fd = ::syscall(SYS_openat2, rootFd, path.empty() ? "." : path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if ((errno != EAGAIN && errno != EINTR) || tries > 1000) return sys(errno);
  }
}

}  // namespace

Result<Found> look(int folderFd, const std::string& name) {
  struct statx st = {};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name.empty() ? AT_EMPTY_PATH : 0);
  if (::statx(folderFd, name.c_str(), flags, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &st) != 0) {
    if (errno == ENOENT) return Found{};
    return sys(errno);
  }
  Found found;
  found.exists = true;
  found.kind = kindOf(st.stx_mode);
  found.mode = st.stx_mode & 07777U;
  found.uid = st.stx_uid;
  found.gid = st.stx_gid;
  found.nlink = st.stx_nlink;
  found.rdev = makedev(st.stx_rdev_major, st.stx_rdev_minor);
  if (st.stx_mask & STATX_MNT_ID) found.mount = st.stx_mnt_id;
  found.fixed = (st.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
  found.mountPoint = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  found.atime = timeOf(st.stx_atime);
  found.identity.known = true;
  found.identity.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
  found.identity.ino = st.stx_ino;
  found.identity.size = found.kind == Kind::Directory ? 0 : st.stx_size;
  found.identity.mtime = timeOf(st.stx_mtime);
  found.identity.ctime = timeOf(st.stx_ctime);
  if (st.stx_mask & STATX_BTIME) found.identity.btime = timeOf(st.stx_btime);
  return found;
}

Result<UniqueFd> openFolder(int rootFd, std::string_view path, int flags) {
  if (path.size() <= kPieceBytes) return openPiece(rootFd, std::string(path), flags);
  UniqueFd here;
  while (path.size() > kPieceBytes) {
    const std::size_t cut = path.rfind('/', kPieceBytes);
    if (cut == std::string_view::npos) return sys(ENAMETOOLONG);
    BOUGH_ASSIGN(UniqueFd next, openPiece(here ? here.get() : rootFd, std::string(path.substr(0, cut)), O_PATH));
    here = std::move(next);
    path.remove_prefix(cut + 1);
  }
  return openPiece(here.get(), std::string(path), flags);
}

std::pair<std::string, std::string> splitPath(std::string_view path) {
  const std::size_t cut = path.rfind('/');
  if (cut == std::string_view::npos) return {"", std::string(path)};
  return {std::string(path.substr(0, cut)), std::string(path.substr(cut + 1))};
}

std::string joinPath(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  if (name.empty()) return std::string(folder);
  return std::string(folder) + "/" + std::string(name);
}

bool sameFile(const Identity& a, const Identity& b) {
  if (a.ino != b.ino) return false;
  const Time none{};
  if (a.btime != none && b.btime != none) return a.btime == b.btime;
  return a.dev == b.dev;
}

Result<std::vector<std::string>> names(int folderFd) {
  // A descriptor of its own: readdir moves the offset.
  UniqueFd own(::openat(folderFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return sys(errno);
  DIR* dir = ::fdopendir(own.get());
  if (!dir) return sys(errno);
  own.release();
  std::vector<std::string> found;
  errno = 0;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") found.emplace_back(name);
    errno = 0;
  }
  const int failed = errno;
  ::closedir(dir);
  if (failed != 0) return sys(failed);
  std::sort(found.begin(), found.end());
  return found;
}

Result<> removeTree(int folderFd, const std::string& name) {
  if (::unlinkat(folderFd, name.c_str(), 0) == 0 || errno == ENOENT) return Done{};
  if (errno != EISDIR && errno != EPERM && errno != EACCES) return sys(errno);
  const int why = errno;
  if (::unlinkat(folderFd, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Done{};
  if (errno != ENOTEMPTY && errno != EEXIST) return sys(errno == ENOTDIR ? why : errno);
  UniqueFd folder(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == EACCES && ::fchmodat(folderFd, name.c_str(), 0700, 0) == 0) {
    folder.reset(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!folder) return sys(errno);
  BOUGH_ASSIGN(const std::vector<std::string> below, names(folder.get()));
  if (!below.empty() && ::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) ::fchmod(folder.get(), 0700);
  for (const std::string& child : below) BOUGH_TRY(removeTree(folder.get(), child));
  if (::unlinkat(folderFd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return sys(errno);
  return Done{};
}

Result<> syncFolder(int folderFd) {
  const UniqueFd readable(::openat(folderFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A folder that may be written but not read cannot be opened for fsync; nothing more can be done for it.
  if (!readable) return errno == EACCES ? Result<>(Done{}) : Result<>(sys(errno));
  // Some network file systems have no fsync for folders.
  if (::fsync(readable.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return sys(errno);
  return Done{};
}

Result<> setTimes(int folderFd, const std::string& name, const Time* atime, const Time& mtime) {
  struct timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  if (atime) times[0] = {static_cast<time_t>(atime->sec), static_cast<long>(atime->nsec)};
  times[1] = {static_cast<time_t>(mtime.sec), static_cast<long>(mtime.nsec)};
  const char* at = name.empty() ? "." : name.c_str();
  if (::utimensat(folderFd, at, times, AT_SYMLINK_NOFOLLOW) != 0) return sys(errno);
  return Done{};
}

std::string shown(std::string_view path) {
  if (path.empty()) return "the base folder";
  std::string text = "\"";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(byte));
      text += hex;
    } else {
      text += c;
    }
  }
  return text + "\"";
}

Error pathError(int errnum, const std::string& what, const std::string& path) {
  const std::string words = what + " " + shown(path) + ": " + std::strerror(errnum) + ". ";
  switch (errnum) {
    case ENOSPC:
    case EDQUOT:
      return Error{errnum, "E_NO_SPACE",
                   words + "The disk is full. Nothing was changed. Make room there and commit again."};
    case EROFS:
      return Error{errnum, "E_READ_ONLY",
                   words + "It lies on a read-only file system. Nothing was changed. Mount it writable and try again."};
    case EPERM:
    case EACCES:
      return Error{
          errnum, "E_READ_ONLY",
          words + "Nothing was changed. Give yourself write permission there (see ls -l, lsattr) and try again."};
    case EBUSY:
      return Error{errnum, "E_READ_ONLY",
                   words + "Something is mounted there. Nothing was changed. Unmount it or leave this path out."};
    default:
      return Error{errnum, "E_IO", words + "Nothing was changed. Mend the cause and try again."};
  }
}

Result<std::shared_ptr<UniqueFd>> Folders::open(const std::string& path) {
  if (const auto found = open_.find(path); found != open_.end()) {
    uses_.splice(uses_.begin(), uses_, found->second.use);
    return found->second.fd;
  }
  BOUGH_ASSIGN(UniqueFd fd, openFolder(root_, path, O_PATH));
  auto shared = std::make_shared<UniqueFd>(std::move(fd));
  if (open_.size() >= kOpenFolders) {
    open_.erase(uses_.back());
    uses_.pop_back();
  }
  uses_.push_front(path);
  open_[path] = Slot{shared, uses_.begin()};
  return shared;
}

}  // namespace bough::base_commit
