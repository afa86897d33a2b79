// See find_names.h.
#include "native/branchfs/commit/find_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "native/branchfs/commit/place.h"
#include "native/common/unique_fd.h"

namespace bough {

namespace {

using base_commit::joinPath;
using Found = std::map<std::uint64_t, std::vector<std::string>>;

class Walk {
 public:
  Walk(const std::set<std::uint64_t>& inodes, const std::set<std::pair<std::uint64_t, std::uint64_t>>& skip)
      : inodes_(inodes), skip_(skip) {}

  /// `fd`: the folder, open for reading; it is used up.
  Result<> folder(UniqueFd fd, const std::string& path) {
    struct stat st = {};
    if (::fstat(fd.get(), &st) != 0) return sys(errno);
    if (path.empty()) device_ = st.st_dev;
    if (st.st_dev != device_ || skip_.contains({st.st_dev, st.st_ino})) return Done{};
    std::vector<std::string> below;
    const int folderFd = fd.get();
    DIR* dir = ::fdopendir(fd.release());
    if (!dir) {
      ::close(folderFd);
      return sys(errno);
    }
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (entry->d_type == DT_DIR) {
        below.push_back(name);
      } else if (inodes_.contains(entry->d_ino)) {
        found[entry->d_ino].push_back(joinPath(path, name));
      } else if (entry->d_type == DT_UNKNOWN) {
        if (::fstatat(folderFd, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
          below.push_back(name);
        }
      }
    }
    Result<> result = Done{};
    for (const std::string& name : below) {
      UniqueFd child(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!child) continue;  // gone, or not readable: nobody sees a name in it either
      result = folder(std::move(child), joinPath(path, name));
      if (!result) break;
    }
    ::closedir(dir);
    return result;
  }

  Found found;

 private:
  const std::set<std::uint64_t>& inodes_;
  const std::set<std::pair<std::uint64_t, std::uint64_t>>& skip_;
  dev_t device_ = 0;
};

}  // namespace

Result<Found> findNames(int baseFd, const std::set<std::uint64_t>& inodes,
                        const std::set<std::pair<std::uint64_t, std::uint64_t>>& skip) {
  UniqueFd base(::openat(baseFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!base) return sys(errno);
  Walk walk(inodes, skip);
  BOUGH_TRY(walk.folder(std::move(base), ""));
  for (auto& [inode, paths] : walk.found) std::sort(paths.begin(), paths.end());
  return std::move(walk.found);
}

}  // namespace bough
