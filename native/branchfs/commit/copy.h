// Copies of files and folders with all that belongs to them: data with its holes, mode, owner, times, xattrs, links
// among them. Used where a hard link or a rename is not possible (another file system).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "native/branchfs/commit/base_commit.h"
#include "native/common/result.h"

namespace bough::base_commit {

/// Copies the data of an open file into an empty one: shared blocks where the file system can, else block by block with
/// its holes. The target gets the source's size.
Result<> copyData(int fromFd, int toFd);

/// Files with several names that were copied already: (device, inode) → where the first copy is.
struct CopiedLinks {
  struct Place {
    int folderFd = -1;  // stays open as long as this map lives
    std::string path;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Place> places;
};

/// Where copies are made: a folder, and the path of the thing that is being copied below it (for links).
struct CopyTarget {
  int rootFd = -1;   // a folder that stays open while `links` lives
  std::string path;  // relative to it
};

/// Copies `name` with everything below it to `to`. Owners and xattrs that the system refuses go to `notApplied` under
/// `path`. `durable`: each file and folder is synced.
Result<> copyTree(int fromFolder, const std::string& name, const CopyTarget& to, CopiedLinks& links,
                  const std::string& path, bool durable, std::vector<NotApplied>& notApplied);

/// Gives a name all that belongs to it besides data, in the order in which the system lets it: owner, xattrs, mode
/// (without set-id bits where the owner was refused), times. Symlinks have no mode. What is refused goes to
/// `notApplied`.
struct Attributes {
  std::uint32_t mode = 0, uid = 0, gid = 0;
  Time atime, mtime;
};
Result<> setAttributes(int folderFd, const std::string& name, Kind kind, const Attributes& attributes,
                       const Xattrs& xattrs, const std::string& path, std::vector<NotApplied>& notApplied);

/// Sets an owner; false: refused, which is noted in `notApplied`.
Result<bool> setOwner(int folderFd, const std::string& name, std::uint32_t uid, std::uint32_t gid,
                      const std::string& path, std::vector<NotApplied>& notApplied);

/// Sets a mode. `owned`: the owner is the one that the mode was meant for.
Result<> setMode(int folderFd, const std::string& name, Kind kind, std::uint32_t mode, bool owned,
                 const std::string& path, std::vector<NotApplied>& notApplied);

/// Makes a fifo, socket or device. False: the system does not allow it, which is noted in `notApplied`.
Result<bool> makeSpecial(int folderFd, const std::string& name, Kind kind, std::uint64_t rdev, const std::string& path,
                         std::vector<NotApplied>& notApplied);

}  // namespace bough::base_commit
