// The folder that branches start from, and the files that commits kept: read-only access by BaseRef. Symlinks are
// never followed, hidden names and the "never" folders (the store, our own mount points) are as if they were not there.
// View reads through it; the store asks it for identities.
#pragma once

#include <sys/statvfs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/branchfs/hide_rules.h"
#include "native/branchfs/model.h"
#include "native/branchfs/watch.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

/// What statx(2) says of a base file.
struct BaseStat {
  Kind kind = Kind::File;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t rdev = 0;
  std::uint32_t nlink = 1;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  // of 512 bytes
  std::uint64_t dev = 0, ino = 0;
  Time atime, mtime, ctime, btime;

  Identity identity() const;
};

/// statx of an open file.
Result<BaseStat> statOf(int fd);

struct BaseName {
  std::string name;
  std::uint64_t ino = 0;  // as getdents says; of a mount point it is the covered folder's
  Kind kind = Kind::File;
  bool kindKnown = true;
};

BaseRef below(const BaseRef& folder, std::string_view name);

class Base {
 public:
  /// `hideGlobs`: see HideRules. `neverFolders`: absolute paths; those outside the base do no harm.
  static Result<std::unique_ptr<Base>> open(const std::string& path, const std::vector<std::string>& hideGlobs = {},
                                            const std::vector<std::string>& neverFolders = {});
  ~Base();
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;

  /// How BaseRef{number, …} with number not 0 is found: an O_PATH descriptor of what a commit kept under it.
  using OpenKept = std::function<Result<UniqueFd>(std::uint32_t root)>;
  /// Before the first use of such a number; not while others use this object.
  void setKept(OpenKept openKept) { openKept_ = std::move(openKept); }
  /// Hides one more folder for good, e.g. a mount point before it is mounted.
  void addNever(const std::string& absolutePath);

  /// All of these answer ENOENT for what is hidden, ELOOP or ENOTDIR where a symlink stands on the way.
  Result<BaseStat> stat(const BaseRef& ref) const;
  Result<BaseStat> statIn(int folderFd, const BaseRef& folder, std::string_view name) const;
  Result<Identity> identityOf(const BaseRef& ref) const;
  enum class Hidden : std::uint8_t { Left, Shown };
  Result<std::vector<BaseName>> list(const BaseRef& ref, Hidden hiddenNames = Hidden::Left) const;
  Result<UniqueFd> openPath(const BaseRef& ref) const;    // O_PATH
  Result<UniqueFd> openFile(const BaseRef& ref) const;    // for reading; EINVAL if it is no regular file
  Result<UniqueFd> openFolder(const BaseRef& ref) const;  // for reading names
  Result<std::string> readlink(const BaseRef& ref) const;
  Result<std::vector<std::string>> xattrNames(const BaseRef& ref) const;
  Result<std::string> xattr(const BaseRef& ref, const std::string& name) const;
  /// All xattrs that we may read; null if there are none.
  Result<std::shared_ptr<const Xattrs>> xattrs(const BaseRef& ref) const;
  Result<struct statvfs> statfs() const;

  /// True when `name` in `folder` must not be seen nor made.
  bool hidden(const BaseRef& folder, std::string_view name) const;
  /// The same where no base folder lies under: only the rules for names in any folder.
  bool hiddenName(std::string_view name) const { return hide_.hidesName(name); }
  /// The node id of a base file by its inode: see NodeId.
  NodeId idOf(const BaseStat& stat) const;
  NodeId idOf(std::uint64_t dev, std::uint64_t ino) const;
  std::uint64_t device() const { return rootStat_.dev; }
  const std::string& path() const { return path_; }

  Watch& watch() { return *watch_; }

 private:
  Base() = default;
  bool isNever(const BaseRef& ref) const;
  bool neverByInode(const BaseStat& stat) const;
  Result<UniqueFd> openRef(const BaseRef& ref, int flags) const;

  std::string path_;
  UniqueFd fd_;
  BaseStat rootStat_;
  HideRules hide_;
  std::unique_ptr<Watch> watch_;
  OpenKept openKept_;
  mutable std::shared_mutex neverLock_;
  std::set<std::string, std::less<>> neverPaths_;                   // relative to the base
  std::set<std::pair<std::uint64_t, std::uint64_t>> neverFolders_;  // dev, ino
  std::atomic<bool> anyNever_{false};
};

}  // namespace bough
