// Places in the base and in the journal folder: opening folders without ever following a symlink, looking at what has a
// name, and errors in words. Used by all of commit/.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "native/branchfs/model.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::base_commit {

/// What a name holds, by statx(2) without following a symlink.
struct Found {
  bool exists = false;
  Kind kind = Kind::File;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t uid = 0, gid = 0, nlink = 0;
  std::uint64_t rdev = 0;
  std::uint64_t mount = 0;  // the mount's number, 0 if the kernel does not tell
  bool fixed = false;       // immutable or append-only
  bool mountPoint = false;
  Time atime;
  Identity identity;
};

/// Looks at `name` in the folder; a missing name is no error. `name` empty: the descriptor itself.
Result<Found> look(int folderFd, const std::string& name);

/// Opens a folder below `rootFd` ("": itself) without leaving it and without following any symlink. `flags` as open(2).
Result<UniqueFd> openFolder(int rootFd, std::string_view path, int flags);

/// "a/b/c" → {"a/b", "c"}; "c" → {"", "c"}.
std::pair<std::string, std::string> splitPath(std::string_view path);
std::string joinPath(std::string_view folder, std::string_view name);

/// The same inode: number and birth time, and the device where no birth time is known (device numbers may change with
/// a reboot, so they count only where there is nothing better).
bool sameFile(const Identity& a, const Identity& b);

/// The names in a folder (without "." and ".."), in the order of their bytes. `folderFd`: opened for reading.
Result<std::vector<std::string>> names(int folderFd);

/// Deletes a name with everything below it. A missing name is no error.
Result<> removeTree(int folderFd, const std::string& name);

/// Makes a folder's names durable. `folderFd` may be O_PATH.
Result<> syncFolder(int folderFd);

/// Sets the mtime, and the atime if given, of a name without following it.
Result<> setTimes(int folderFd, const std::string& name, const Time* atime, const Time& mtime);

/// An errno as the error that a person sees: code by what it means, words with the path.
Error pathError(int errnum, const std::string& what, const std::string& path);

/// Printable form of a path of any bytes.
std::string shown(std::string_view path);

/// Descriptors (O_PATH) of a base's folders, the last ones used kept open.
class Folders {
 public:
  explicit Folders(int rootFd) : root_(rootFd) {}
  Result<std::shared_ptr<UniqueFd>> open(const std::string& path);
  int root() const { return root_; }

 private:
  struct Slot {
    std::shared_ptr<UniqueFd> fd;
    std::list<std::string>::iterator use;
  };
  int root_;
  std::list<std::string> uses_;
  std::unordered_map<std::string, Slot> open_;
};

}  // namespace bough::base_commit
