// A small FileSystem in memory; see memory_fs.h.
#include "native/branchfs/fuse/memory_fs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <ctime>

namespace bough::fuse {
namespace {

constexpr std::uint64_t kMaxSize = 64u << 20;  // a fuzzer asks for more

Time now() {
  timespec ts{};
  ::clock_gettime(CLOCK_REALTIME, &ts);
  return {ts.tv_sec, static_cast<std::uint32_t>(ts.tv_nsec)};
}

}  // namespace

MemoryFs::MemoryFs() {
  File root;
  root.attr.id = kRootNode;
  root.attr.kind = Kind::Directory;
  root.attr.mode = 0755;
  root.attr.nlink = 2;
  root.attr.mtime = root.attr.ctime = root.attr.atime = root.attr.btime = now();
  files_.emplace(kRootNode, std::move(root));
}

std::size_t MemoryFs::openHandles() const {
  std::lock_guard guard(lock_);
  return handles_.size();
}

std::uint64_t MemoryFs::lookups() const {
  std::lock_guard guard(lock_);
  std::uint64_t sum = 0;
  for (const auto& [id, n] : lookups_) sum += n;
  return sum;
}

void MemoryFs::setContent(const std::string& name, const std::string& data) {
  std::lock_guard guard(lock_);
  auto& names = files_.at(kRootNode).names;
  if (!names.contains(name)) (void)add({}, kRootNode, name, Kind::File, 0644);
  File& file = files_.at(names.at(name));
  file.data = data;
  file.attr.size = data.size();
  file.attr.mtime = file.attr.ctime = now();
}

void MemoryFs::removeFromOutside(const std::string& name) {
  std::lock_guard guard(lock_);
  files_.at(kRootNode).names.erase(name);
}

void MemoryFs::holdReads(bool hold) {
  std::lock_guard guard(lock_);
  readsHeld_ = hold;
  changed_.notify_all();
}

MemoryFs::File* MemoryFs::find(NodeId id) {
  auto found = files_.find(id);
  return found == files_.end() ? nullptr : &found->second;
}

MemoryFs::File* MemoryFs::folder(NodeId id) {
  File* file = find(id);
  return file != nullptr && file->attr.kind == Kind::Directory ? file : nullptr;
}

MemoryFs::File* MemoryFs::byHandle(Handle handle) {
  auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : find(found->second);
}

Looked MemoryFs::lookAndCount(const File& file) {
  ++lookups_[file.attr.id];
  return look(file);
}

Handle MemoryFs::newHandle(NodeId id) {
  handles_.emplace(nextHandle_, id);
  return nextHandle_++;
}

void MemoryFs::resize(File& file, std::uint64_t size) {
  file.data.resize(size);
  file.attr.size = size;
  file.attr.blocks = (size + 511) / 512;
  file.attr.mtime = file.attr.ctime = now();
}

// The caller holds the lock and counts the lookup.
Result<Looked> MemoryFs::add(const Caller& caller, NodeId parent, std::string_view name, Kind kind,
                             std::uint32_t mode) {
  File* dir = folder(parent);
  if (dir == nullptr) return sys(ENOTDIR);
  if (dir->names.contains(name)) return sys(EEXIST);
  if (name.size() > 255) return sys(ENAMETOOLONG);
  File file;
  file.attr.id = next_++;
  file.attr.kind = kind;
  file.attr.mode = mode;
  file.attr.uid = caller.uid;
  file.attr.gid = caller.gid;
  file.attr.nlink = kind == Kind::Directory ? 2 : 1;
  file.attr.mtime = file.attr.ctime = file.attr.atime = file.attr.btime = now();
  dir->names.emplace(name, file.attr.id);
  auto [placed, fresh] = files_.emplace(file.attr.id, std::move(file));
  return look(placed->second);
}

Result<Looked> MemoryFs::lookup(NodeId parent, std::string_view name) {
  std::lock_guard guard(lock_);
  File* dir = folder(parent);
  if (dir == nullptr) return sys(ENOTDIR);
  auto found = dir->names.find(name);
  if (found == dir->names.end()) return Looked{{}, keep.load()};
  return lookAndCount(files_.at(found->second));
}

void MemoryFs::forget(NodeId id, std::uint64_t n) {
  std::lock_guard guard(lock_);
  auto found = lookups_.find(id);
  if (found == lookups_.end()) return;
  found->second -= std::min(found->second, n);
  if (found->second == 0) lookups_.erase(found);
}

Result<Looked> MemoryFs::getattr(NodeId id, std::optional<Handle>) {
  std::lock_guard guard(lock_);
  ++getattrs;
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  return look(*file);
}

Result<Looked> MemoryFs::setattr(const Caller&, NodeId id, std::optional<Handle>, const SetAttr& change) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  if (change.size) {
    if (file->attr.kind != Kind::File) return sys(EINVAL);
    if (*change.size > kMaxSize) return sys(EFBIG);
    resize(*file, *change.size);
  }
  if (change.mode) file->attr.mode = *change.mode;
  if (change.uid) file->attr.uid = *change.uid;
  if (change.gid) file->attr.gid = *change.gid;
  if (change.atime) file->attr.atime = *change.atime;
  if (change.mtime) file->attr.mtime = *change.mtime;
  if (change.atimeNow) file->attr.atime = now();
  if (change.mtimeNow) file->attr.mtime = now();
  file->attr.ctime = now();
  return look(*file);
}

Result<std::string> MemoryFs::readlink(NodeId id) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  if (file->attr.kind != Kind::Symlink) return sys(EINVAL);
  return file->data;
}

Result<Looked> MemoryFs::mknod(const Caller& caller, NodeId parent, std::string_view name, Kind kind,
                               std::uint32_t mode, std::uint64_t rdev) {
  std::lock_guard guard(lock_);
  auto added = add(caller, parent, name, kind, mode);
  if (!added) return added;
  File& file = files_.at(added->attr.id);
  file.attr.rdev = rdev;
  return lookAndCount(file);
}

Result<Looked> MemoryFs::mkdir(const Caller& caller, NodeId parent, std::string_view name, std::uint32_t mode) {
  std::lock_guard guard(lock_);
  auto added = add(caller, parent, name, Kind::Directory, mode);
  if (!added) return added;
  ++files_.at(parent).attr.nlink;
  return lookAndCount(files_.at(added->attr.id));
}

Result<Looked> MemoryFs::symlink(const Caller& caller, NodeId parent, std::string_view name, std::string_view target) {
  std::lock_guard guard(lock_);
  auto added = add(caller, parent, name, Kind::Symlink, 0777);
  if (!added) return added;
  File& file = files_.at(added->attr.id);
  file.data = target;
  file.attr.size = target.size();
  return lookAndCount(file);
}

Result<Looked> MemoryFs::link(NodeId id, NodeId newParent, std::string_view newName) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  File* dir = folder(newParent);
  if (file == nullptr || dir == nullptr) return sys(ENOENT);
  if (file->attr.kind == Kind::Directory) return sys(EPERM);
  if (!dir->names.emplace(newName, id).second) return sys(EEXIST);
  ++file->attr.nlink;
  return lookAndCount(*file);
}

Result<> MemoryFs::unlink(NodeId parent, std::string_view name) {
  std::lock_guard guard(lock_);
  File* dir = folder(parent);
  if (dir == nullptr) return sys(ENOTDIR);
  auto found = dir->names.find(name);
  if (found == dir->names.end()) return sys(ENOENT);
  File& file = files_.at(found->second);
  if (file.attr.kind == Kind::Directory) return sys(EISDIR);
  --file.attr.nlink;
  dir->names.erase(found);
  return Done{};
}

Result<> MemoryFs::rmdir(NodeId parent, std::string_view name) {
  std::lock_guard guard(lock_);
  File* dir = folder(parent);
  if (dir == nullptr) return sys(ENOTDIR);
  auto found = dir->names.find(name);
  if (found == dir->names.end()) return sys(ENOENT);
  File& file = files_.at(found->second);
  if (file.attr.kind != Kind::Directory) return sys(ENOTDIR);
  if (!file.names.empty()) return sys(ENOTEMPTY);
  --dir->attr.nlink;
  dir->names.erase(found);
  return Done{};
}

Result<> MemoryFs::rename(NodeId parent, std::string_view name, NodeId newParent, std::string_view newName,
                          std::uint32_t flags) {
  std::lock_guard guard(lock_);
  File* from = folder(parent);
  File* to = folder(newParent);
  if (from == nullptr || to == nullptr) return sys(ENOTDIR);
  auto found = from->names.find(name);
  if (found == from->names.end()) return sys(ENOENT);
  if ((flags & RENAME_NOREPLACE) && to->names.contains(newName)) return sys(EEXIST);
  if (flags & ~static_cast<std::uint32_t>(RENAME_NOREPLACE)) return sys(EINVAL);
  const NodeId id = found->second;
  from->names.erase(found);
  to->names.insert_or_assign(std::string(newName), id);
  return Done{};
}

Result<Opened> MemoryFs::open(NodeId id, std::uint32_t flags) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  if (file->attr.kind != Kind::File) return sys(EINVAL);
  if (flags & O_TRUNC) resize(*file, 0);
  return Opened{newHandle(id), true};
}

Result<std::pair<Looked, Opened>> MemoryFs::create(const Caller& caller, NodeId parent, std::string_view name,
                                                   std::uint32_t mode, std::uint32_t) {
  std::lock_guard guard(lock_);
  auto added = add(caller, parent, name, Kind::File, mode);
  if (!added) return added.error();
  return std::pair(lookAndCount(files_.at(added->attr.id)), Opened{newHandle(added->attr.id), true});
}

Result<std::pair<Looked, Opened>> MemoryFs::tmpfile(const Caller& caller, NodeId parent, std::uint32_t mode,
                                                    std::uint32_t) {
  std::lock_guard guard(lock_);
  const std::string name = "tmp" + std::to_string(next_);
  auto added = add(caller, parent, name, Kind::File, mode);
  if (!added) return added.error();
  File& file = files_.at(added->attr.id);
  file.attr.nlink = 0;
  folder(parent)->names.erase(name);
  return std::pair(lookAndCount(file), Opened{newHandle(added->attr.id), true});
}

Result<std::size_t> MemoryFs::read(Handle handle, std::uint64_t offset, std::span<std::byte> out) {
  std::unique_lock guard(lock_);
  ++readsWaiting;
  changed_.wait(guard, [&] { return !readsHeld_; });
  --readsWaiting;
  File* file = byHandle(handle);
  if (file == nullptr) return sys(EBADF);
  if (offset >= file->data.size()) return std::size_t{0};
  const std::size_t length = std::min(out.size(), file->data.size() - static_cast<std::size_t>(offset));
  std::memcpy(out.data(), file->data.data() + offset, length);
  return length;
}

Result<std::size_t> MemoryFs::write(Handle handle, std::uint64_t offset, std::span<const std::byte> data, bool append) {
  std::lock_guard guard(lock_);
  File* file = byHandle(handle);
  if (file == nullptr) return sys(EBADF);
  if (append) offset = file->data.size();
  if (offset > kMaxSize || offset + data.size() > kMaxSize) return sys(EFBIG);
  if (offset + data.size() > file->data.size()) resize(*file, offset + data.size());
  if (!data.empty()) std::memcpy(file->data.data() + offset, data.data(), data.size());
  file->attr.mtime = now();
  return data.size();
}

Result<> MemoryFs::fsync(Handle, bool) { return Done{}; }

Result<> MemoryFs::fallocate(Handle handle, std::uint32_t mode, std::uint64_t offset, std::uint64_t length) {
  std::lock_guard guard(lock_);
  File* file = byHandle(handle);
  if (file == nullptr) return sys(EBADF);
  if (mode != 0) return sys(EOPNOTSUPP);
  if (offset > kMaxSize || length > kMaxSize) return sys(EFBIG);
  if (offset + length > file->data.size()) resize(*file, offset + length);
  return Done{};
}

Result<std::uint64_t> MemoryFs::lseek(Handle handle, std::uint64_t offset, int whence) {
  std::lock_guard guard(lock_);
  File* file = byHandle(handle);
  if (file == nullptr) return sys(EBADF);
  if (offset >= file->data.size()) return sys(ENXIO);
  return whence == SEEK_DATA ? offset : file->data.size();
}

Result<std::size_t> MemoryFs::copyRange(Handle from, std::uint64_t fromOffset, Handle to, std::uint64_t toOffset,
                                        std::size_t length) {
  std::lock_guard guard(lock_);
  File* source = byHandle(from);
  File* target = byHandle(to);
  if (source == nullptr || target == nullptr) return sys(EBADF);
  if (fromOffset >= source->data.size()) return std::size_t{0};
  const std::string part = source->data.substr(fromOffset, length);
  if (toOffset > kMaxSize) return sys(EFBIG);
  if (toOffset + part.size() > target->data.size()) resize(*target, toOffset + part.size());
  target->data.replace(toOffset, part.size(), part);
  return part.size();
}

void MemoryFs::release(Handle handle) {
  std::lock_guard guard(lock_);
  handles_.erase(handle);
}

Result<Opened> MemoryFs::opendir(NodeId id) {
  std::lock_guard guard(lock_);
  if (folder(id) == nullptr) return sys(ENOTDIR);
  return Opened{newHandle(id), true};
}

Result<> MemoryFs::readdir(Handle handle, std::uint64_t cookie, bool plus, const std::function<bool(DirItem&)>& take) {
  std::lock_guard guard(lock_);
  File* dir = byHandle(handle);
  if (dir == nullptr) return sys(EBADF);
  std::vector<DirItem> items;
  items.push_back({".", dir->attr.id, Kind::Directory, 1, std::nullopt});
  items.push_back({"..", dir->attr.id, Kind::Directory, 2, std::nullopt});
  for (const auto& [name, id] : dir->names) items.push_back({name, id, files_.at(id).attr.kind, items.size() + 1, {}});
  for (auto& item : items) {
    if (item.cookie <= cookie) continue;
    if (plus && item.cookie > 2) item.looked = lookAndCount(files_.at(item.id));
    if (!take(item)) break;
  }
  return Done{};
}

Result<> MemoryFs::fsyncdir(NodeId) { return Done{}; }

void MemoryFs::releasedir(Handle handle) { release(handle); }

Result<std::string> MemoryFs::getxattr(NodeId id, std::string_view name) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  auto found = file->xattrs.find(name);
  if (found == file->xattrs.end()) return sys(ENODATA);
  return found->second;
}

Result<std::vector<std::string>> MemoryFs::listxattr(NodeId id) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  std::vector<std::string> names;
  for (const auto& [name, value] : file->xattrs) names.push_back(name);
  return names;
}

Result<> MemoryFs::setxattr(NodeId id, std::string_view name, std::string_view value, int flags) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  const bool there = file->xattrs.contains(name);
  if ((flags & XATTR_CREATE) && there) return sys(EEXIST);
  if ((flags & XATTR_REPLACE) && !there) return sys(ENODATA);
  file->xattrs.insert_or_assign(std::string(name), std::string(value));
  return Done{};
}

Result<> MemoryFs::removexattr(NodeId id, std::string_view name) {
  std::lock_guard guard(lock_);
  File* file = find(id);
  if (file == nullptr) return sys(ENOENT);
  auto found = file->xattrs.find(name);
  if (found == file->xattrs.end()) return sys(ENODATA);
  file->xattrs.erase(found);
  return Done{};
}

Result<struct statvfs> MemoryFs::statfs() {
  struct statvfs out{};
  out.f_bsize = out.f_frsize = 4096;
  out.f_blocks = 1000;
  out.f_bfree = out.f_bavail = 500;
  out.f_files = 100;
  out.f_ffree = 50;
  out.f_namemax = 255;
  return out;
}

}  // namespace bough::fuse
