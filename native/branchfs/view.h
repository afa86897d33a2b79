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

class Draft;
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
  /// The data of a regular file, for pread; null for one that never had any.
  Result<SharedFd> openData(std::string_view path);
  Result<std::string> xattr(std::string_view path, std::string_view name);
  Result<std::vector<std::string>> xattrNames(std::string_view path);
  /// Writes a whole file (made if it is not there; its folder must be). An existing file keeps mode, owner and xattrs.
  Result<> writeFile(const Caller& caller, std::string_view path, std::string_view data);

  /// Fixes what the branch sees at a path although it has not changed it: the node there (or, where nothing is, a
  /// whiteout) and the folders on the way go into tree and point. Nothing to do: fine. A path below something that is
  /// no folder: nothing to do.
  Result<> settle(std::string_view path);
  /// The same for many paths in one record, for callers who hold `branch->lock` exclusively; they commit the change.
  Result<Change> settleChange(const std::vector<std::string>& paths);
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

  friend class Draft;

  /// A file as an operation meets it. `node` points into the tree: it holds as long as the branch's lock does and the
  /// tree is not changed.
  struct Found {
    NodeId id = 0;
    const NodePtr* node = nullptr;  // null: virtual, `ref` and `stat` say what it is
    BaseRef ref;
    BaseStat stat;
    Kind kind() const { return node ? (*node)->kind : stat.kind; }
    const Node& operator*() const { return **node; }
  };
  enum class Watching : std::uint8_t { NotYet, Yes, Cannot };
  using Place = std::pair<NodeId, std::string>;  // folder and name
  /// A node that the transport knows or a handle holds.
  struct Known {
    Place place;                     // where it was met last: leads a virtual node to its base file
    std::vector<Place> otherPlaces;  // of a base file with hard links
    std::uint64_t lookups = 0;
    std::uint32_t handles = 0;
    std::uint64_t dev = 0, ino = 0;  // a virtual node's base file, to notice that another one took its place
    Time btime;
    Time seenMtime;  // of base data when it was opened last
    std::uint64_t seenSize = 0;
    Watching watching = Watching::NotYet;          // a folder of the base: whether this view holds a watch on it
    std::uint64_t watchedDev = 0, watchedIno = 0;  // which one it is
    bool linkable = false;                         // made by tmpfile without O_EXCL
    bool orphan = false;                           // in Branch::orphans
  };
  using KnownTable = std::unordered_map<NodeId, Known>;
  struct FolderItem {
    std::string name;
    NodeId id = 0;
    Kind kind = Kind::File;
  };
  /// Where a file's data are.
  struct Data {
    Content content;         // as in the node
    bool own = false;        // an object that may be written in place
    bool isVirtual = false;  // not in the tree: Where::Base, but the place is not looked for yet
  };

  // view_lookup.cc; the branch's lock is held
  const Nodes& nodes() const;
  Result<> mayChange() const;
  Result<BaseRef> refOf(NodeId id);
  Result<Found> find(NodeId id);
  Result<Found> findFolder(NodeId id);  // without asking the base what a virtual folder is now
  /// `folderFd`: the base folder below, if the caller has it open (saves walking there).
  Result<Found> child(const Found& folder, std::string_view name, int folderFd = -1);
  Result<Looked> lookupIn(NodeId parent, std::string_view name, int folderFd);
  Result<Found> fromBase(BaseRef ref, BaseStat stat);
  bool knownAsAnother(NodeId id, const BaseStat& stat);
  std::optional<BaseRef> underOf(const Found& folder) const;
  bool namesBelow(const BaseRef& under, std::string_view name);
  Result<> mayMake(const Found& folder, std::string_view name);
  Result<Attr> attrOf(const Found& found);
  Keep keepOf(const Found& found, NodeId folder);
  Looked look(const Found& found, const Attr& attr, NodeId folder, std::string_view name);
  void learn(const Found& found, NodeId folder, std::string_view name);
  void startListening();  // no lock held: the watch's thread may be waiting for one
  Watching watchFolder(const Found& folder);
  void dropKnown(NodeId id, std::uint64_t lookups, std::uint32_t handles);
  bool isKnown(NodeId id);
  bool isInside(NodeId folder, NodeId ancestor);
  void moved(NodeId id, NodeId folder, std::string_view name);

  // view_names.cc
  Result<Looked> make(const Caller& caller, NodeId parent, std::string_view name, Node node,
                      std::optional<ObjectId> object);
  void unname(Draft& draft, const Found& folder, std::string_view name, const Found& was);
  Result<> dropName(Draft& draft, const Found& target, const Place& place,
                    std::vector<std::pair<NodeId, NodePtr>>& orphans);
  Result<bool> folderEmpty(const Found& folder);
  void keepOrphans(std::vector<std::pair<NodeId, NodePtr>>& orphans);

  /// A frozen copy of a small base file's data.
  struct Pristine {
    Content content;
    BaseRef ref;
    BaseStat stat;
  };
  /// Of the file with this name, if it is small and its data are still the base's; no lock held.
  std::optional<Pristine> pristineOf(NodeId folder, std::string_view name);

  // view_attr.cc
  Result<std::string> xattrOf(const Found& found, std::string_view name);
  Result<std::vector<std::string>> xattrNamesOf(const Found& found);
  template <typename Edit>
  Result<> editXattrs(NodeId id, std::string_view name, Edit&& edit);

  // view_file.cc, view_copy_up.cc
  Handle addHandle(std::shared_ptr<OpenFile> file);
  Result<std::shared_ptr<OpenFile>> fileOf(Handle handle);
  Data dataOf(NodeId id);  // lock held
  Result<SharedFd> fdOf(OpenFile& file, const Data& data);
  /// Calls `work(fd)` under the shared lock with a descriptor that may be written; copies up first where needed, then
  /// only the first `keep` bytes.
  template <typename Work>
  auto withOwnData(NodeId id, OpenFile* file, std::uint64_t keep, Work&& work) -> decltype(work(0));
  Result<> copyUp(NodeId id, OpenFile* file, std::uint64_t keep);
  Result<> truncate(NodeId id, OpenFile* file, std::uint64_t size);
  Result<Opened> openFound(const Found& found, std::uint32_t flags);

  // view_dir.cc
  Result<std::vector<FolderItem>> itemsOf(const Found& folder);

  // view_path.cc; the branch's lock is held
  struct Step {
    NodeId folder = 0;
    std::string name;
    Found found;
  };
  /// The nodes on the way to a path, the root first, up to the first name that is not there.
  struct Way {
    std::vector<Step> steps;
    std::optional<std::string> missing;
    bool missingIsLast = false;
  };
  Result<Way> walk(std::string_view path);
  Result<Found> walkTo(std::string_view path);

  // view_events.cc
  void nameChanged(NodeId folder, const std::string& name) override;
  void fileChanged(NodeId folder, const std::string& name) override;
  void foldersMoved() override;
  void everythingChanged() override;
  void tell(const std::vector<NodeId>& ids, const std::vector<Place>& names);

  std::shared_ptr<Branch> branch_;
  Base& base_;
  Objects& objects_;
  Source source_;
  Nodes own_;
  std::once_flag listenOnce_;
  std::atomic<bool> listening_{false};

  std::mutex knownLock_;  // after Branch::lock
  KnownTable known_;

  std::shared_mutex handlesLock_;
  std::unordered_map<Handle, std::shared_ptr<OpenFile>> files_;
  std::unordered_map<Handle, std::shared_ptr<OpenFolder>> folders_;
  std::atomic<Handle> nextHandle_{1};
  std::array<std::mutex, 64> copyUpLocks_;  // one copy-up of a file at a time; before Branch::lock
};

}  // namespace bough
