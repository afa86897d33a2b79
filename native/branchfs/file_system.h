// The file system as one trait: what a transport (the kernel's FUSE channel now, a guest's virtio-fs later) asks of a
// branch. View implements it; fuse/ serves it. Semantics are those of the system calls of the same name (POSIX.1-2017
// and the Linux man pages); an Error carries the errno to answer.
//
// Threads: every function may be called from any thread at any time. Ids and handles that a transport holds stay valid
// until forget and release, also across commits, rebases and branch points.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/branchfs/model.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

/// Who asks. The kernel has already checked permission bits (mount option default_permissions).
struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t pid = 0;
};

struct Attr {
  NodeId id = 0;
  Kind kind = Kind::File;
  std::uint32_t mode = 0;  // permission bits only
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t rdev = 0;
  std::uint32_t nlink = 1;
  std::uint64_t size = 0;    // bytes
  std::uint64_t blocks = 0;  // of 512 bytes
  Time atime, mtime, ctime, btime;
};

/// How long the kernel may keep what it was told without asking again. `forever` only where a watch will tell of
/// changes from outside; otherwise one second.
enum class Keep : std::uint8_t { Forever, Second, No };

struct Looked {
  Attr attr;
  Keep keep = Keep::Second;
};

/// What to change, as setattr: only fields with a value.
struct SetAttr {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<std::uint64_t> size;
  std::optional<Time> atime, mtime, ctime;
  bool atimeNow = false, mtimeNow = false;
};

struct DirItem {
  std::string name;
  NodeId id = 0;
  Kind kind = Kind::File;
  std::uint64_t cookie = 0;      // where to go on after this entry; stable while the folder changes
  std::optional<Looked> looked;  // readdirplus: counted as one lookup
};

using Handle = std::uint64_t;

struct Opened {
  Handle handle = 0;
  bool keepCache = true;  // pages cached from earlier opens are still right
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Each success of lookup, mknod, mkdir, symlink, link, create, tmpfile and each `looked` of readdir adds one to the
  /// node's lookup count; forget takes `n` away.
  virtual Result<Looked> lookup(NodeId parent, std::string_view name) = 0;
  virtual void forget(NodeId id, std::uint64_t n) = 0;
  virtual Result<Looked> getattr(NodeId id, std::optional<Handle> handle) = 0;
  virtual Result<Looked> setattr(const Caller&, NodeId id, std::optional<Handle> handle, const SetAttr&) = 0;
  virtual Result<std::string> readlink(NodeId id) = 0;
  virtual Result<Looked> mknod(const Caller&, NodeId parent, std::string_view name, Kind, std::uint32_t mode,
                               std::uint64_t rdev) = 0;
  virtual Result<Looked> mkdir(const Caller&, NodeId parent, std::string_view name, std::uint32_t mode) = 0;
  virtual Result<Looked> symlink(const Caller&, NodeId parent, std::string_view name, std::string_view target) = 0;
  virtual Result<Looked> link(NodeId id, NodeId newParent, std::string_view newName) = 0;
  virtual Result<> unlink(NodeId parent, std::string_view name) = 0;
  virtual Result<> rmdir(NodeId parent, std::string_view name) = 0;
  /// `flags` as renameat2(2): 0, RENAME_NOREPLACE or RENAME_EXCHANGE (RENAME_WHITEOUT: EINVAL).
  virtual Result<> rename(NodeId parent, std::string_view name, NodeId newParent, std::string_view newName,
                          std::uint32_t flags) = 0;

  /// `flags` as open(2).
  virtual Result<Opened> open(NodeId id, std::uint32_t flags) = 0;
  virtual Result<std::pair<Looked, Opened>> create(const Caller&, NodeId parent, std::string_view name,
                                                   std::uint32_t mode, std::uint32_t flags) = 0;
  virtual Result<std::pair<Looked, Opened>> tmpfile(const Caller&, NodeId parent, std::uint32_t mode,
                                                    std::uint32_t flags) = 0;
  /// Reads into `out`; the number of bytes, short only at the end of the file.
  virtual Result<std::size_t> read(Handle, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// `append`: at the end whatever `offset` says (O_APPEND).
  virtual Result<std::size_t> write(Handle, std::uint64_t offset, std::span<const std::byte> data, bool append) = 0;
  virtual Result<> fsync(Handle, bool dataOnly) = 0;
  virtual Result<> fallocate(Handle, std::uint32_t mode, std::uint64_t offset, std::uint64_t length) = 0;
  virtual Result<std::uint64_t> lseek(Handle, std::uint64_t offset, int whence) = 0;  // SEEK_DATA, SEEK_HOLE
  virtual Result<std::size_t> copyRange(Handle from, std::uint64_t fromOffset, Handle to, std::uint64_t toOffset,
                                        std::size_t length) = 0;
  virtual void release(Handle) = 0;

  virtual Result<Opened> opendir(NodeId id) = 0;
  /// Calls `take` for each entry after `cookie` (0: from the start, "." and ".." included) until it answers false.
  virtual Result<> readdir(Handle, std::uint64_t cookie, bool plus, const std::function<bool(DirItem&)>& take) = 0;
  virtual Result<> fsyncdir(NodeId id) = 0;
  virtual void releasedir(Handle) = 0;

  virtual Result<std::string> getxattr(NodeId id, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> listxattr(NodeId id) = 0;
  virtual Result<> setxattr(NodeId id, std::string_view name, std::string_view value, int flags) = 0;
  virtual Result<> removexattr(NodeId id, std::string_view name) = 0;
  virtual Result<struct statvfs> statfs() = 0;
};

/// What a transport does for the file system: drop what its client has cached. Called without locks held; may be called
/// for ids that the client does not know.
class Invalidator {
 public:
  virtual ~Invalidator() = default;
  virtual void node(NodeId id) = 0;                                // attributes and data
  virtual void entry(NodeId parent, const std::string& name) = 0;  // a name, positive or negative
};

}  // namespace bough
