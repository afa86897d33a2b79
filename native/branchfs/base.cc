// See base.h.
#include "native/branchfs/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <mutex>
#include <shared_mutex>

namespace bough {

namespace {

constexpr std::uint64_t kResolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr unsigned kStatMask = STATX_BASIC_STATS | STATX_BTIME;
constexpr NodeId kHashedBit = 1ULL << 61;

Time timeOf(const statx_timestamp& time) { return Time{time.tv_sec, time.tv_nsec}; }

/// d_type of getdents(2); nothing when the file system does not say.
bool kindOfEntry(unsigned char type, Kind& kind) {
  switch (type) {
    case DT_REG:
      kind = Kind::File;
      return true;
    case DT_DIR:
      kind = Kind::Directory;
      return true;
    case DT_LNK:
      kind = Kind::Symlink;
      return true;
    case DT_FIFO:
      kind = Kind::Fifo;
      return true;
    case DT_SOCK:
      kind = Kind::Socket;
      return true;
    case DT_CHR:
      kind = Kind::CharDevice;
      return true;
    case DT_BLK:
      kind = Kind::BlockDevice;
      return true;
    default:
      return false;
  }
}

Result<BaseStat> statxAt(int fd, const char* name, int flags) {
  struct statx raw{};
  if (::statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | flags, kStatMask, &raw) != 0) return sys(errno);
  BaseStat stat;
  stat.kind = kindOf(raw.stx_mode);
  stat.mode = raw.stx_mode & 07777U;
  stat.uid = raw.stx_uid;
  stat.gid = raw.stx_gid;
  stat.rdev = makedev(raw.stx_rdev_major, raw.stx_rdev_minor);
  stat.nlink = raw.stx_nlink;
  stat.size = raw.stx_size;
  stat.blocks = raw.stx_blocks;
  stat.dev = makedev(raw.stx_dev_major, raw.stx_dev_minor);
  stat.ino = raw.stx_ino;
  stat.atime = timeOf(raw.stx_atime);
  stat.mtime = timeOf(raw.stx_mtime);
  stat.ctime = timeOf(raw.stx_ctime);
  if (raw.stx_mask & STATX_BTIME) stat.btime = timeOf(raw.stx_btime);
  return stat;
}

Result<UniqueFd> openBelow(int folder, const char* path, int flags) {
  struct open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  how.resolve = kResolve;
  for (int attempt = 0;; attempt++) {
    long fd = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    // EAGAIN: a rename elsewhere raced with RESOLVE_BENEATH.
    if ((errno == EAGAIN || errno == EINTR) && attempt < 128) continue;
    return sys(errno == EXDEV ? ENOENT : errno);
  }
}

/// What a commit makes beside its targets for a moment: no branch sees it.
bool isStagingName(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with(".bough-stage-"); }

std::string procPath(const UniqueFd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

}  // namespace

Identity BaseStat::identity() const {
  Identity identity;
  identity.known = true;
  identity.dev = dev;
  identity.ino = ino;
  identity.size = kind == Kind::Directory ? 0 : size;
  identity.mtime = mtime;
  identity.ctime = ctime;
  identity.btime = btime;
  return identity;
}

Result<BaseStat> statOf(int fd) { return statxAt(fd, "", AT_EMPTY_PATH); }

BaseRef below(const BaseRef& folder, std::string_view name) {
  BaseRef ref;
  ref.root = folder.root;
  ref.path.reserve(folder.path.size() + 1 + name.size());
  ref.path = folder.path;
  if (!ref.path.empty()) ref.path += '/';
  ref.path += name;
  return ref;
}

Base::~Base() = default;

Result<std::unique_ptr<Base>> Base::open(const std::string& path, const std::vector<std::string>& hideGlobs,
                                         const std::vector<std::string>& neverFolders) {
  std::unique_ptr<Base> base(new Base);
  std::array<char, PATH_MAX> real{};
  if (!::realpath(path.c_str(), real.data())) return sysError(errno, "Cannot open the base folder " + path);
  base->path_ = real.data();
  base->fd_ = UniqueFd(::open(real.data(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!base->fd_) return sysError(errno, "Cannot open the base folder " + path);
  BOUGH_ASSIGN(base->rootStat_, statOf(base->fd_.get()));
  base->hide_ = HideRules(hideGlobs);
  base->watch_ = std::make_unique<Watch>();
  for (const std::string& folder : neverFolders) base->addNever(folder);
  return base;
}

void Base::addNever(const std::string& absolutePath) {
  // The folder itself is not resolved: it may be a mount point of ours, which only answers once we serve it.
  std::string given = absolutePath;
  while (given.size() > 1 && given.ends_with('/')) given.pop_back();
  std::size_t slash = given.rfind('/');
  if (slash == std::string::npos) return;
  std::array<char, PATH_MAX> real{};
  std::string parent = slash == 0 ? "/" : given.substr(0, slash);
  std::string full = ::realpath(parent.c_str(), real.data()) ? std::string(real.data()) : parent;
  if (!full.ends_with('/')) full += '/';
  full += given.substr(slash + 1);
  std::string prefix = path_ == "/" ? "/" : path_ + "/";
  std::unique_lock guard(neverLock_);
  if (full.starts_with(prefix)) {
    neverPaths_.insert(full.substr(prefix.size()));
    anyNever_ = true;
  }
  // By inode as well, for a base that shows the folder at a second place (a bind mount).
  struct stat status{};
  if (auto fd = UniqueFd(::open(full.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      fd && ::fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    neverFolders_.emplace(status.st_dev, status.st_ino);
    anyNever_ = true;
  }
}

bool Base::isNever(const BaseRef& ref) const {
  if (!anyNever_ || ref.root != 0) return false;
  std::shared_lock guard(neverLock_);
  if (neverPaths_.empty()) return false;
  auto next = neverPaths_.upper_bound(ref.path);
  if (next == neverPaths_.begin()) return false;
  const std::string& candidate = *std::prev(next);  // the only one that can be the path
  if (ref.path == candidate) return true;
  for (std::size_t slash = ref.path.find('/'); slash != std::string::npos; slash = ref.path.find('/', slash + 1)) {
    if (neverPaths_.contains(std::string_view(ref.path).substr(0, slash))) return true;
  }
  return false;
}

bool Base::hidden(const BaseRef& folder, std::string_view name) const {
  if (!hide_.empty() && hide_.hides(folder.path, name)) return true;
  return anyNever_ && isNever(below(folder, name));
}

Result<UniqueFd> Base::openRef(const BaseRef& ref, int flags) const {
  UniqueFd kept;
  int root = fd_.get();
  if (ref.root != 0) {
    if (!openKept_) return sys(ENOENT);
    BOUGH_ASSIGN(kept, openKept_(ref.root));
    root = kept.get();
  } else if (isNever(ref) || isStagingName(ref.path)) {
    return sys(ENOENT);
  }
  if (ref.path.empty()) {
    if (ref.root == 0) return openBelow(root, ".", flags);
    if (flags & O_PATH) return kept;
    // What is kept may be a file: the way from an O_PATH descriptor to a readable one leads through /proc.
    int fd = ::open(procPath(kept).c_str(), flags | O_CLOEXEC);
    if (fd < 0) return sys(errno);
    return UniqueFd(fd);
  }
  if (ref.path.size() < PATH_MAX) return openBelow(root, ref.path.c_str(), flags);
  // Longer than one system call takes: go down in pieces.
  UniqueFd folder;
  std::string_view rest = ref.path;
  while (rest.size() >= PATH_MAX) {
    std::size_t slash = rest.rfind('/', PATH_MAX - 2);
    if (slash == std::string_view::npos) return sys(ENAMETOOLONG);
    std::string piece(rest.substr(0, slash));
    BOUGH_ASSIGN(folder, openBelow(folder ? folder.get() : root, piece.c_str(), O_PATH | O_DIRECTORY));
    rest.remove_prefix(slash + 1);
  }
  return openBelow(folder.get(), std::string(rest).c_str(), flags);
}

Result<UniqueFd> Base::openPath(const BaseRef& ref) const { return openRef(ref, O_PATH); }

Result<UniqueFd> Base::openFile(const BaseRef& ref) const {
  // Looked at first: opening a device or a fifo for reading would do something.
  BOUGH_ASSIGN(BaseStat before, stat(ref));
  if (before.kind != Kind::File) return sys(EINVAL);
  auto fd = openRef(ref, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOATIME);
  if (!fd && fd.error().errnum == EPERM) fd = openRef(ref, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return fd;
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) return sys(errno);
  if (!S_ISREG(status.st_mode)) return sys(EINVAL);
  return fd;
}

Result<UniqueFd> Base::openFolder(const BaseRef& ref) const { return openRef(ref, O_RDONLY | O_DIRECTORY); }

Result<BaseStat> Base::stat(const BaseRef& ref) const {
  BOUGH_ASSIGN(UniqueFd fd, openRef(ref, O_PATH));
  BOUGH_ASSIGN(BaseStat found, statOf(fd.get()));
  if (found.kind == Kind::Directory && neverByInode(found)) return sys(ENOENT);
  return found;
}

Result<BaseStat> Base::statIn(int folderFd, const BaseRef& folder, std::string_view name) const {
  if (hidden(folder, name) || isStagingName(name)) return sys(ENOENT);
  BOUGH_ASSIGN(BaseStat found, statxAt(folderFd, std::string(name).c_str(), 0));
  if (found.kind == Kind::Directory && neverByInode(found)) return sys(ENOENT);
  return found;
}

bool Base::neverByInode(const BaseStat& stat) const {
  if (!anyNever_) return false;
  std::shared_lock guard(neverLock_);
  return neverFolders_.contains({stat.dev, stat.ino});
}

Result<Identity> Base::identityOf(const BaseRef& ref) const {
  BOUGH_ASSIGN(BaseStat found, stat(ref));
  return found.identity();
}

Result<std::vector<BaseName>> Base::list(const BaseRef& ref, Hidden hiddenNames) const {
  BOUGH_ASSIGN(UniqueFd fd, openFolder(ref));
  DIR* folder = ::fdopendir(fd.get());
  if (!folder) return sys(errno);
  (void)fd.release();
  std::unique_ptr<DIR, int (*)(DIR*)> closer(folder, ::closedir);
  std::vector<BaseName> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder);
    if (!entry) {
      if (errno != 0) return sys(errno);
      return names;
    }
    std::string_view name = entry->d_name;
    if (name == "." || name == ".." || isStagingName(name)) continue;
    const bool showAll = hiddenNames == Hidden::Shown;
    if (!showAll && hidden(ref, name)) continue;
    BaseName item;
    item.name = name;
    item.ino = entry->d_ino;
    item.kindKnown = kindOfEntry(entry->d_type, item.kind);
    if (anyNever_ && !showAll && (!item.kindKnown || item.kind == Kind::Directory)) {
      auto stat = statxAt(::dirfd(folder), entry->d_name, 0);
      if (stat && stat->kind == Kind::Directory && neverByInode(*stat)) continue;
    }
    names.push_back(std::move(item));
  }
}

Result<std::string> Base::readlink(const BaseRef& ref) const {
  BOUGH_ASSIGN(UniqueFd fd, openRef(ref, O_PATH));
  std::string target(PATH_MAX, '\0');
  ssize_t length = ::readlinkat(fd.get(), "", target.data(), target.size());
  if (length < 0) return sys(errno == ENOENT ? EINVAL : errno);  // ENOENT: no symlink behind the descriptor
  target.resize(static_cast<std::size_t>(length));
  return target;
}

Result<std::vector<std::string>> Base::xattrNames(const BaseRef& ref) const {
  BOUGH_ASSIGN(UniqueFd fd, openRef(ref, O_PATH));
  std::string path = procPath(fd);
  std::string buffer;
  for (;;) {
    ssize_t length = ::listxattr(path.c_str(), nullptr, 0);
    if (length < 0) return sys(errno);
    buffer.resize(static_cast<std::size_t>(length));
    if (length == 0) break;
    length = ::listxattr(path.c_str(), buffer.data(), buffer.size());
    if (length < 0 && errno == ERANGE) continue;  // one more came in between
    if (length < 0) return sys(errno);
    buffer.resize(static_cast<std::size_t>(length));
    break;
  }
  std::vector<std::string> names;
  for (std::size_t at = 0; at < buffer.size();) {
    std::string name = buffer.substr(at, buffer.find('\0', at) - at);
    at += name.size() + 1;
    names.push_back(std::move(name));
  }
  return names;
}

Result<std::string> Base::xattr(const BaseRef& ref, const std::string& name) const {
  BOUGH_ASSIGN(UniqueFd fd, openRef(ref, O_PATH));
  std::string path = procPath(fd);
  std::string value(256, '\0');
  for (;;) {
    ssize_t length = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (length >= 0) {
      value.resize(static_cast<std::size_t>(length));
      return value;
    }
    if (errno != ERANGE) return sys(errno);
    length = ::getxattr(path.c_str(), name.c_str(), nullptr, 0);
    if (length < 0) return sys(errno);
    value.resize(static_cast<std::size_t>(length) + 1);
  }
}

Result<std::shared_ptr<const Xattrs>> Base::xattrs(const BaseRef& ref) const {
  auto names = xattrNames(ref);
  if (!names) {
    // A file system without xattrs has none.
    if (names.error().errnum == EOPNOTSUPP || names.error().errnum == ENOSYS) return std::shared_ptr<const Xattrs>();
    return names.error();
  }
  auto all = std::make_shared<Xattrs>();
  for (const std::string& name : *names) {
    auto value = xattr(ref, name);
    if (value) all->emplace(name, std::move(*value));  // else: not ours to read, or just gone
  }
  return all->empty() ? std::shared_ptr<const Xattrs>() : std::shared_ptr<const Xattrs>(std::move(all));
}

Result<struct statvfs> Base::statfs() const {
  struct statvfs status{};
  if (::fstatvfs(fd_.get(), &status) != 0) return sys(errno);
  return status;
}

NodeId Base::idOf(std::uint64_t dev, std::uint64_t ino) const {
  if (dev == rootStat_.dev) {
    if (ino == rootStat_.ino) return kRootNode;
    if (ino > kRootNode && ino < kHashedBit) return ino;
  }
  return (stableHash(dev * 0x9e3779b97f4a7c15ULL + ino) & (kHashedBit - 1)) | kHashedBit;
}
NodeId Base::idOf(const BaseStat& stat) const { return idOf(stat.dev, stat.ino); }

}  // namespace bough
