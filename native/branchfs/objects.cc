// See objects.h.
#include "native/branchfs/objects.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace bough {

namespace {

/// "ab/cdef…": the last byte of the number spreads the files over 256 folders.
std::array<char, 32> objectPath(ObjectId id) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "%02x/%014llx", static_cast<unsigned>(id & 0xff),
                static_cast<unsigned long long>(id >> 8));
  return path;
}

/// Copies [from, to) of one file to the same place of the other.
Result<> copyBytes(int source, int target, off_t offset, off_t end) {
  while (offset < end) {
    off_t readAt = offset;
    off_t writeAt = offset;
    ssize_t done = ::copy_file_range(source, &readAt, target, &writeAt, static_cast<std::size_t>(end - offset), 0);
    if (done > 0) {
      offset += done;
      continue;
    }
    if (done == 0) return Done{};  // the source ends here: it was cut meanwhile
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS && errno != EPERM) {
      return sys(errno);
    }
    std::vector<char> buffer(static_cast<std::size_t>(std::min<off_t>(end - offset, 1 << 20)));
    while (offset < end) {
      ssize_t got = ::pread(source, buffer.data(),
                            std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(end - offset)), offset);
      if (got == 0) return Done{};
      if (got < 0) {
        if (errno == EINTR) continue;
        return sys(errno);
      }
      for (ssize_t put = 0; put < got;) {
        ssize_t wrote = ::pwrite(target, buffer.data() + put, static_cast<std::size_t>(got - put), offset + put);
        if (wrote < 0) {
          if (errno == EINTR) continue;
          return sys(errno);
        }
        put += wrote;
      }
      offset += got;
    }
  }
  return Done{};
}

}  // namespace

Result<> copyFileData(int from, int to, std::uint64_t length) {
  struct stat status{};
  if (::fstat(from, &status) != 0) return sys(errno);
  off_t end = static_cast<off_t>(std::min<std::uint64_t>(length, static_cast<std::uint64_t>(status.st_size)));
  if (end > 0 && end == status.st_size && ::ioctl(to, FICLONE, from) == 0) {
    if (static_cast<std::uint64_t>(end) == length) return Done{};
    if (::ftruncate(to, static_cast<off_t>(length)) != 0) return sys(errno);
    return Done{};
  }
  off_t offset = 0;
  // One block or a file without holes (as many blocks as its size needs) saves the search for data.
  bool dense = end <= 4096 || status.st_blocks * 512 >= status.st_size;
  while (offset < end) {
    off_t data = dense ? offset : ::lseek(from, offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    off_t hole = end;
    if (data < 0) {
      data = offset;  // a file system without SEEK_DATA
    } else if (!dense) {
      hole = ::lseek(from, data, SEEK_HOLE);
      if (hole < 0) hole = end;
    }
    if (data >= end) break;
    hole = std::min(hole, end);
    BOUGH_TRY(copyBytes(from, to, data, hole));
    offset = hole;
  }
  if (::fstat(to, &status) != 0) return sys(errno);
  if (static_cast<std::uint64_t>(status.st_size) != length && ::ftruncate(to, static_cast<off_t>(length)) != 0) {
    return sys(errno);
  }
  return Done{};
}

/// Outlives Objects in the leases that nodes still hold.
struct Objects::Garbage {
  std::mutex lock;
  std::vector<ObjectId> gone;
};

Objects::Objects(UniqueFd folder, std::size_t cachedFds)
    : folder_(std::move(folder)),
      cachedFds_(std::max<std::size_t>(cachedFds, 8)),
      garbage_(std::make_shared<Garbage>()) {}
Objects::~Objects() = default;

Result<std::unique_ptr<Objects>> Objects::open(const std::string& folder, std::size_t cachedFds) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return sysError(errno, "Cannot make " + folder);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return sysError(errno, "Cannot open " + folder);
  return std::unique_ptr<Objects>(new Objects(std::move(fd), cachedFds));
}

void Objects::keep(ObjectId id, const SharedFd& fd) {
  SharedFd closeOutsideTheLock;
  std::lock_guard guard(cacheLock_);
  if (cache_.contains(id)) return;
  ages_.push_back(id);
  cache_.emplace(id, Cached{fd, std::prev(ages_.end())});
  if (cache_.size() <= cachedFds_) return;
  auto oldest = cache_.find(ages_.front());
  closeOutsideTheLock = std::move(oldest->second.fd);
  cache_.erase(oldest);
  ages_.pop_front();
}

Result<SharedFd> Objects::create(ObjectId id) {
  // O_NOATIME: branches that share an object must not see each other read.
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOATIME;
  auto path = objectPath(id);
  int fd = ::openat(folder_.get(), path.data(), kFlags, 0600);
  if (fd < 0 && errno == ENOENT) {  // the first one in its folder
    path[2] = '\0';
    if (::mkdirat(folder_.get(), path.data(), 0700) != 0 && errno != EEXIST) return sys(errno);
    path[2] = '/';
    fd = ::openat(folder_.get(), path.data(), kFlags, 0600);
  }
  if (fd < 0) return sys(errno);
  auto shared = std::make_shared<const UniqueFd>(fd);
  keep(id, shared);
  return shared;
}

Result<SharedFd> Objects::createFrom(ObjectId id, int from, std::uint64_t length) {
  BOUGH_ASSIGN(SharedFd fd, create(id));
  auto copied = copyFileData(from, fd->get(), length);
  if (!copied) {
    (void)remove(id);
    return copied.error();
  }
  return fd;
}

Result<SharedFd> Objects::get(ObjectId id) {
  {
    std::lock_guard guard(cacheLock_);
    auto cached = cache_.find(id);
    if (cached != cache_.end()) {
      ages_.splice(ages_.end(), ages_, cached->second.age);
      return cached->second.fd;
    }
  }
  auto path = objectPath(id);
  int fd = ::openat(folder_.get(), path.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOATIME);
  if (fd < 0) return sys(errno == ENOENT ? EIO : errno);  // a tree names it, so it must be there
  auto shared = std::make_shared<const UniqueFd>(fd);
  keep(id, shared);
  return shared;
}

Result<struct stat> Objects::stat(ObjectId id) {
  SharedFd fd;
  {
    std::lock_guard guard(cacheLock_);
    auto cached = cache_.find(id);
    if (cached != cache_.end()) fd = cached->second.fd;
  }
  struct stat status{};
  int failed =
      fd ? ::fstat(fd->get(), &status) : ::fstatat(folder_.get(), objectPath(id).data(), &status, AT_SYMLINK_NOFOLLOW);
  if (failed) return sys(errno == ENOENT ? EIO : errno);
  return status;
}

Result<> Objects::remove(ObjectId id) {
  SharedFd closeOutsideTheLock;
  {
    std::lock_guard guard(cacheLock_);
    auto cached = cache_.find(id);
    if (cached != cache_.end()) {
      closeOutsideTheLock = std::move(cached->second.fd);
      ages_.erase(cached->second.age);
      cache_.erase(cached);
    }
  }
  if (::unlinkat(folder_.get(), objectPath(id).data(), 0) != 0 && errno != ENOENT) return sys(errno);
  return Done{};
}

Result<std::uint64_t> Objects::bytesOnDisk(ObjectId id) {
  BOUGH_ASSIGN(struct stat status, stat(id));
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

std::shared_ptr<const void> Objects::lease(ObjectId id) {
  struct Lease {
    std::shared_ptr<Garbage> garbage;
    ObjectId id;
    Lease(std::shared_ptr<Garbage> to, ObjectId object) : garbage(std::move(to)), id(object) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      std::lock_guard guard(garbage->lock);
      garbage->gone.push_back(id);
    }
  };
  std::lock_guard guard(leaseLock_);
  std::weak_ptr<const void>& known = leases_[id];
  std::shared_ptr<const void> held = known.lock();
  if (!held) {
    held = std::make_shared<const Lease>(garbage_, id);
    known = held;
  }
  return held;
}

std::vector<ObjectId> Objects::takeGarbage() {
  std::vector<ObjectId> gone;
  {
    std::lock_guard guard(garbage_->lock);
    gone.swap(garbage_->gone);
  }
  std::lock_guard guard(leaseLock_);
  std::erase_if(gone, [&](ObjectId id) {  // leased again meanwhile: not garbage after all
    auto known = leases_.find(id);
    if (known == leases_.end()) return false;
    if (!known->second.expired()) return true;
    leases_.erase(known);
    return false;
  });
  return gone;
}

Result<> Objects::forEach(const std::function<void(ObjectId)>& f) const {
  for (unsigned i = 0; i < 256; i++) {
    std::array<char, 4> name{};
    std::snprintf(name.data(), name.size(), "%02x", i);
    int fd = ::openat(folder_.get(), name.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) return sys(errno);
    DIR* folder = ::fdopendir(fd);
    if (!folder) {
      ::close(fd);
      return sys(errno);
    }
    std::unique_ptr<DIR, int (*)(DIR*)> closer(folder, ::closedir);
    while (const dirent* entry = ::readdir(folder)) {
      std::string_view text = entry->d_name;
      ObjectId high = 0;
      auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), high, 16);
      if (failed != std::errc() || end != text.data() + text.size() || text.size() != 14) continue;
      f((high << 8) | i);
    }
  }
  return Done{};
}

Result<> Objects::syncAll() const {
  if (::syncfs(folder_.get()) != 0) return sys(errno);
  return Done{};
}

Result<struct statvfs> Objects::statfs() const {
  struct statvfs status{};
  if (::fstatvfs(folder_.get(), &status) != 0) return sys(errno);
  return status;
}

}  // namespace bough
