// A branch as a file system: what lies in its tree, over what lies in the base. fuse/ serves a View to the kernel; the
// store reads branches, points and parents through Views by path and stages their files for commits.
//
// Inside, every operation starts from a Found: a node of the tree, or a file of the base that the branch has not
// touched (virtual). view_lookup.cc finds and counts; view_names.cc changes names; view_attr.cc changes attributes and
// xattrs; view_file.cc and open_file.h read and write data; view_dir.cc lists; view_path.cc works by path;
// view_stage.cc writes files of the view into a host folder.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "native/branchfs/base.h"
#include "native/branchfs/branch.h"
#include "native/branchfs/file_system.h"
#include "native/branchfs/objects.h"
#include "native/branchfs/watch.h"

namespace bough {

class OpenFile;
struct OpenFolder;

/// What stands at a path of a view.
struct AtPath {
  Attr attr;
  NodePtr node;         // null: the branch has not touched it
  BaseRef ref;          // where the base has it; for a node: its content.base or under, if it has one
  bool inBase = false;  // `ref` says something
  Identity identity;    // of the base file (live when virtual, as settled otherwise)
  std::string target;   // Symlink
};

/// What staging could not bring over, because this process may not: the commit goes on and says so.
struct NotApplied {
  std::string path;  // relative to the view's root
  std::string what;  // "owner", "mode", "device", "xattr <name>"
  int errnum = 0;
};

class View final : public FileSystem, private WatchListener {
 public:
  /// The branch itself. `base` and `objects` outlive the view.
  View(std::shared_ptr<Branch> branch, Base& base, Objects& objects);
  ~View() override;

  /// Read-only: what the branch started from (with what was settled since).
  static std::unique_ptr<View> ofPoint(std::shared_ptr<Branch> branch, Base& base, Objects& objects);
  /// Read-only: some nodes. `branch` only lends its lock.
  static std::unique_ptr<View> ofNodes(std::shared_ptr<Branch> branch, Nodes nodes, Base& base, Objects& objects);

  // ---- By path: bytes without leading slash, "" is the root. Symlinks are not followed (a symlink on the way: ELOOP).

  Result<AtPath> resolve(std::string_view path);
  /// The whole file; EFBIG if it has more than `max` bytes, EINVAL if it is no regular file.
  Result<std::string> readFile(std::string_view path, std::uint64_t max);
  Result<std::vector<DirItem>> listFolder(std::string_view path);
  Result<std::vector<std::string>> xattrNames(std::string_view path);
  /// Writes a whole file (made if it is not there; its folder must be). An existing file keeps mode, owner and xattrs.
  Result<> writeFile(const Caller& caller, std::string_view path, std::string_view data);

  /// Fixes what the branch sees at a path although it has not changed it: the node there (or, where nothing is, a
  /// whiteout) and the folders on the way go into tree and point. Nothing to do: fine. A path below something that is
  /// no folder: nothing to do.
  Result<> settle(std::string_view path);
  /// The same for many paths in one record, for callers who hold `branch->lock` exclusively; they commit the change.
  Result<Change> settleChange(const std::vector<std::string>& paths);
  /// After a commit moved base files into a kept root: every node of tree and point whose data or under lies at or
  /// below a `first` now has it at the same place below `second`. The caller holds `branch->lock` exclusively and
  /// commits the change. Cost follows the branch's delta.
  Result<Change> repointChange(const std::vector<std::pair<BaseRef, BaseRef>>& moves);
  /// Copies the base's data of the file at `path` into an object that tree and point name (a pin). For reflinking
  /// stores it costs nothing; else the file's size.
  Result<> pin(std::string_view path);

  /// Makes what stands at `path` once more as `name` in the host folder `dirFd` (which has no such name): files with
  /// data and holes, symlinks, devices, whole folders; hard links inside it stay links; mode, owner, xattrs and times
  /// last. On an error what was made so far stays: the caller removes it. Does not sync.
  Result<> stage(std::string_view path, int dirFd, const std::string& name, std::vector<NotApplied>& notApplied);

  /// The store has put other nodes in place of `before` (commit of a child into this branch, rebase), under
  /// `branch->lock`, which it still holds exclusively: what programs hold open and the new tree lacks becomes an
  /// orphan.
  void treeReplaced(const Nodes& before);
  /// Nodes and names that differ between `before` and the tree now, to every transport. No locks held.
  void invalidateSince(const Nodes& before);

  Branch& branch() { return *branch_; }

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
  enum class Source : std::uint8_t { Tree, Point, Own };
  View(std::shared_ptr<Branch> branch, Base& base, Objects& objects, Source source, Nodes own);

  /// A file as an operation meets it. Pointers into the tree hold as long as the branch's lock does.
  struct Found {
    NodeId id = 0;
    const NodePtr* node = nullptr;  // null: virtual, `ref` and `stat` say what it is
    BaseRef ref;
    BaseStat stat;
    Kind kind() const { return node ? (*node)->kind : stat.kind; }
  };
  /// A node that the transport knows or a handle holds.
  struct Known {
    NodeId parent = 0;  // the place where it was met last: leads a virtual node to its base file
    std::string name;
    std::vector<std::pair<NodeId, std::string>> otherNames;  // of a base file with hard links
    std::uint64_t lookups = 0;
    std::uint32_t handles = 0;
    std::uint64_t dev = 0, ino = 0;  // of a virtual node's base file, to notice that another one took its place
    Time btime;
    bool folder = false;
    bool watched = false;   // this view holds a watch on the base folder
    bool linkable = false;  // made by tmpfile without O_EXCL
    bool orphan = false;    // in Branch::orphans
  };
};

}  // namespace bough
