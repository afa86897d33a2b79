// A view that shows one folder of a branch as its root: nothing beside or above it can be named or reached. Used by
// BranchMount for mounts of a folder; the view below does all the work.
//
// The folder keeps its node whatever its name becomes, as a bind mount does. Its node id is shown as the root's; all
// other ids are those of the view, so that a branch has the same inode numbers through either.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "native/branchfs/file_system.h"
#include "native/common/result.h"

namespace bough {

class Subtree final : public FileSystem {
 public:
  /// The folder at `path` (as View's paths, not empty) as it is now. ENOENT if it is not there or hidden, ENOTDIR if it
  /// is no folder, ELOOP if a symlink stands on the way.
  static Result<std::unique_ptr<Subtree>> at(std::shared_ptr<FileSystem> whole, const std::string& path);
  /// The folder with this node id, which the branch's tree has. ENOTDIR if it is no folder.
  static Result<std::unique_ptr<Subtree>> of(std::shared_ptr<FileSystem> whole, NodeId folder);
  ~Subtree() override;
  Subtree(const Subtree&) = delete;
  Subtree& operator=(const Subtree&) = delete;

  /// The shown folder's id in the whole.
  NodeId folder() const { return held_.back(); }

  // ---- FileSystem

  Result<Looked> lookup(NodeId parent, std::string_view name) override;
  void forget(NodeId id, std::uint64_t n) override;
  Result<Looked> getattr(NodeId id, std::optional<Handle> handle) override;
  Result<Looked> setattr(const Caller&, NodeId id, std::optional<Handle> handle, const SetAttr&) override;
  Result<std::string> readlink(NodeId id) override;
  Result<Looked> mknod(const Caller&, NodeId parent, std::string_view name, Kind, std::uint32_t mode,
                       std::uint64_t rdev) override;
  Result<Looked> mkdir(const Caller&, NodeId parent, std::string_view name, std::uint32_t mode) override;
  Result<Looked> symlink(const Caller&, NodeId parent, std::string_view name, std::string_view target) override;
  Result<Looked> link(NodeId id, NodeId newParent, std::string_view newName) override;
  Result<> unlink(NodeId parent, std::string_view name) override;
  Result<> rmdir(NodeId parent, std::string_view name) override;
  Result<> rename(NodeId parent, std::string_view name, NodeId newParent, std::string_view newName,
                  std::uint32_t flags) override;
  Result<Opened> open(NodeId id, std::uint32_t flags) override;
  Result<std::pair<Looked, Opened>> create(const Caller&, NodeId parent, std::string_view name, std::uint32_t mode,
                                           std::uint32_t flags) override;
  Result<std::pair<Looked, Opened>> tmpfile(const Caller&, NodeId parent, std::uint32_t mode,
                                            std::uint32_t flags) override;
  Result<std::size_t> read(Handle, std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::size_t> write(Handle, std::uint64_t offset, std::span<const std::byte> data, bool append) override;
  Result<> fsync(Handle, bool dataOnly) override;
  Result<> fallocate(Handle, std::uint32_t mode, std::uint64_t offset, std::uint64_t length) override;
  Result<std::uint64_t> lseek(Handle, std::uint64_t offset, int whence) override;
  Result<std::size_t> copyRange(Handle from, std::uint64_t fromOffset, Handle to, std::uint64_t toOffset,
                                std::size_t length) override;
  void release(Handle) override;
  Result<Opened> opendir(NodeId id) override;
  Result<> readdir(Handle, std::uint64_t cookie, bool plus, const std::function<bool(DirItem&)>& take) override;
  Result<> fsyncdir(NodeId id) override;
  void releasedir(Handle) override;
  Result<std::string> getxattr(NodeId id, std::string_view name) override;
  Result<std::vector<std::string>> listxattr(NodeId id) override;
  Result<> setxattr(NodeId id, std::string_view name, std::string_view value, int flags) override;
  Result<> removexattr(NodeId id, std::string_view name) override;
  Result<struct statvfs> statfs() override;

 private:
  explicit Subtree(std::shared_ptr<FileSystem> whole) : whole_(std::move(whole)) {}

  NodeId in(NodeId id) const { return id == kRootNode ? folder() : id; }
  NodeId out(NodeId id) const { return id == folder() ? kRootNode : id; }
  Result<Looked> out(Result<Looked> looked) const;

  std::shared_ptr<FileSystem> whole_;
  std::vector<NodeId> held_;  // looked up once each: the folders on the way, then the folder itself
  std::mutex rootHandlesLock_;
  std::unordered_set<Handle> rootHandles_;  // of the shown folder: its ".." is itself
};

/// Takes what the whole branch says to drop to a transport that shows a Subtree.
class SubtreeInvalidator final : public Invalidator {
 public:
  SubtreeInvalidator(NodeId folder, Invalidator& to) : folder_(folder), to_(to) {}
  void node(NodeId id) override;
  void entry(NodeId parent, const std::string& name) override;

 private:
  const NodeId folder_;
  Invalidator& to_;
};

}  // namespace bough
