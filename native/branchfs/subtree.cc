// One folder of a branch as a file system of its own. See subtree.h.
#include "native/branchfs/subtree.h"

#include <utility>

namespace bough {

Result<std::unique_ptr<Subtree>> Subtree::at(std::shared_ptr<FileSystem> whole, const std::string& path) {
  std::unique_ptr<Subtree> subtree(new Subtree(std::move(whole)));  // NOLINT: the constructor is private
  // A folder that the branch has not touched is found by the way that leads to it, so all of it is held.
  NodeId at = kRootNode;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    BOUGH_ASSIGN(const Looked looked, subtree->whole_->lookup(at, std::string_view(path).substr(from, slash - from)));
    at = looked.attr.id;
    subtree->held_.push_back(at);
    if (looked.attr.kind == Kind::Symlink) return sys(ELOOP);
    if (looked.attr.kind != Kind::Directory) return sys(ENOTDIR);
    from = slash + 1;
  }
  return subtree;
}

Result<std::unique_ptr<Subtree>> Subtree::of(std::shared_ptr<FileSystem> whole, NodeId folder) {
  std::unique_ptr<Subtree> subtree(new Subtree(std::move(whole)));  // NOLINT: the constructor is private
  BOUGH_ASSIGN(const Looked looked, subtree->whole_->lookup(folder, "."));
  subtree->held_.push_back(looked.attr.id);
  return subtree;
}

Subtree::~Subtree() {
  for (const NodeId id : held_) whole_->forget(id, 1);
}

Result<Looked> Subtree::out(Result<Looked> looked) const {
  if (looked) looked->attr.id = out(looked->attr.id);
  return looked;
}

Result<Looked> Subtree::lookup(NodeId parent, std::string_view name) {
  // As at the root of any mount.
  if (parent == kRootNode && name == "..") name = ".";
  return out(whole_->lookup(in(parent), name));
}
void Subtree::forget(NodeId id, std::uint64_t n) { whole_->forget(in(id), n); }
Result<Looked> Subtree::getattr(NodeId id, std::optional<Handle> handle) {
  return out(whole_->getattr(in(id), handle));
}
Result<Looked> Subtree::setattr(const Caller& caller, NodeId id, std::optional<Handle> handle, const SetAttr& change) {
  return out(whole_->setattr(caller, in(id), handle, change));
}
Result<std::string> Subtree::readlink(NodeId id) { return whole_->readlink(in(id)); }
Result<Looked> Subtree::mknod(const Caller& caller, NodeId parent, std::string_view name, Kind kind, std::uint32_t mode,
                              std::uint64_t rdev) {
  return whole_->mknod(caller, in(parent), name, kind, mode, rdev);
}
Result<Looked> Subtree::mkdir(const Caller& caller, NodeId parent, std::string_view name, std::uint32_t mode) {
  return whole_->mkdir(caller, in(parent), name, mode);
}
Result<Looked> Subtree::symlink(const Caller& caller, NodeId parent, std::string_view name, std::string_view target) {
  return whole_->symlink(caller, in(parent), name, target);
}
Result<Looked> Subtree::link(NodeId id, NodeId newParent, std::string_view newName) {
  return whole_->link(in(id), in(newParent), newName);
}
Result<> Subtree::unlink(NodeId parent, std::string_view name) { return whole_->unlink(in(parent), name); }
Result<> Subtree::rmdir(NodeId parent, std::string_view name) { return whole_->rmdir(in(parent), name); }
Result<> Subtree::rename(NodeId parent, std::string_view name, NodeId newParent, std::string_view newName,
                         std::uint32_t flags) {
  return whole_->rename(in(parent), name, in(newParent), newName, flags);
}

Result<Opened> Subtree::open(NodeId id, std::uint32_t flags) { return whole_->open(in(id), flags); }
Result<std::pair<Looked, Opened>> Subtree::create(const Caller& caller, NodeId parent, std::string_view name,
                                                  std::uint32_t mode, std::uint32_t flags) {
  return whole_->create(caller, in(parent), name, mode, flags);
}
Result<std::pair<Looked, Opened>> Subtree::tmpfile(const Caller& caller, NodeId parent, std::uint32_t mode,
                                                   std::uint32_t flags) {
  return whole_->tmpfile(caller, in(parent), mode, flags);
}
Result<std::size_t> Subtree::read(Handle handle, std::uint64_t offset, std::span<std::byte> out) {
  return whole_->read(handle, offset, out);
}
Result<std::size_t> Subtree::write(Handle handle, std::uint64_t offset, std::span<const std::byte> data, bool append) {
  return whole_->write(handle, offset, data, append);
}
Result<> Subtree::fsync(Handle handle, bool dataOnly) { return whole_->fsync(handle, dataOnly); }
Result<> Subtree::fallocate(Handle handle, std::uint32_t mode, std::uint64_t offset, std::uint64_t length) {
  return whole_->fallocate(handle, mode, offset, length);
}
Result<std::uint64_t> Subtree::lseek(Handle handle, std::uint64_t offset, int whence) {
  return whole_->lseek(handle, offset, whence);
}
Result<std::size_t> Subtree::copyRange(Handle from, std::uint64_t fromOffset, Handle to, std::uint64_t toOffset,
                                       std::size_t length) {
  return whole_->copyRange(from, fromOffset, to, toOffset, length);
}
void Subtree::release(Handle handle) { whole_->release(handle); }

Result<Opened> Subtree::opendir(NodeId id) {
  auto opened = whole_->opendir(in(id));
  if (opened && id == kRootNode) {
    const std::lock_guard guard(rootHandlesLock_);
    rootHandles_.insert(opened->handle);
  }
  return opened;
}
Result<> Subtree::readdir(Handle handle, std::uint64_t cookie, bool plus, const std::function<bool(DirItem&)>& take) {
  bool ofRoot = false;
  {
    const std::lock_guard guard(rootHandlesLock_);
    ofRoot = rootHandles_.contains(handle);
  }
  return whole_->readdir(handle, cookie, plus, [&](DirItem& item) {
    item.id = ofRoot && item.name == ".." ? kRootNode : out(item.id);
    return take(item);
  });
}
Result<> Subtree::fsyncdir(NodeId id) { return whole_->fsyncdir(in(id)); }
void Subtree::releasedir(Handle handle) {
  {
    const std::lock_guard guard(rootHandlesLock_);
    rootHandles_.erase(handle);
  }
  whole_->releasedir(handle);
}

Result<std::string> Subtree::getxattr(NodeId id, std::string_view name) { return whole_->getxattr(in(id), name); }
Result<std::vector<std::string>> Subtree::listxattr(NodeId id) { return whole_->listxattr(in(id)); }
Result<> Subtree::setxattr(NodeId id, std::string_view name, std::string_view value, int flags) {
  return whole_->setxattr(in(id), name, value, flags);
}
Result<> Subtree::removexattr(NodeId id, std::string_view name) { return whole_->removexattr(in(id), name); }
Result<struct statvfs> Subtree::statfs() { return whole_->statfs(); }

void SubtreeInvalidator::node(NodeId id) {
  // The branch's own root is not there for this transport; its number is the shown folder's.
  if (id != kRootNode) to_.node(id == folder_ ? kRootNode : id);
}
void SubtreeInvalidator::entry(NodeId parent, const std::string& name) {
  if (parent != kRootNode) to_.entry(parent == folder_ ? kRootNode : parent, name);
}

}  // namespace bough
