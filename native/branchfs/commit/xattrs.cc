// See xattrs.h.
#include "native/branchfs/commit/xattrs.h"

#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace bough::base_commit {

namespace {

// The l*xattr calls take a path only; this one names a folder that is open, so that nothing on the way can change.
std::string pathOf(int folderFd, const std::string& name) {
  return "/proc/self/fd/" + std::to_string(folderFd) + "/" + (name.empty() ? "." : name);
}

Result<std::vector<std::string>> list(const std::string& path) {
  std::string buffer;
  for (;;) {
    const ssize_t size = ::llistxattr(path.c_str(), nullptr, 0);
    if (size < 0) return sys(errno);
    if (size == 0) return std::vector<std::string>{};
    buffer.resize(static_cast<std::size_t>(size));
    const ssize_t got = ::llistxattr(path.c_str(), buffer.data(), buffer.size());
    if (got < 0 && errno == ERANGE) continue;  // grew between the two calls
    if (got < 0) return sys(errno);
    buffer.resize(static_cast<std::size_t>(got));
    break;
  }
  std::vector<std::string> found;
  for (std::size_t at = 0; at < buffer.size();) {
    const std::size_t end = buffer.find('\0', at);
    found.push_back(buffer.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return found;
}

Result<std::string> get(const std::string& path, const std::string& key) {
  std::string value;
  for (;;) {
    const ssize_t size = ::lgetxattr(path.c_str(), key.c_str(), nullptr, 0);
    if (size < 0) return sys(errno);
    value.resize(static_cast<std::size_t>(size));
    if (size == 0) return value;
    const ssize_t got = ::lgetxattr(path.c_str(), key.c_str(), value.data(), value.size());
    if (got < 0 && errno == ERANGE) continue;
    if (got < 0) return sys(errno);
    value.resize(static_cast<std::size_t>(got));
    return value;
  }
}

bool isSystems(std::string_view key) { return key.starts_with("security."); }

}  // namespace

Result<Xattrs> readXattrs(int folderFd, const std::string& name) {
  const std::string path = pathOf(folderFd, name);
  auto keys = list(path);
  if (!keys) {
    if (keys.error().errnum == ENOTSUP || keys.error().errnum == ENOSYS) return Xattrs{};
    return keys.error();
  }
  Xattrs all;
  for (const std::string& key : *keys) {
    auto value = get(path, key);
    // Listed but not readable for this user (or gone again): not ours to carry.
    if (value) all.emplace(key, std::move(*value));
  }
  return all;
}

Result<> writeXattrs(int folderFd, const std::string& name, const Xattrs& wanted, const std::string& path,
                     std::vector<NotApplied>& notApplied) {
  BOUGH_ASSIGN(const Xattrs present, readXattrs(folderFd, name));
  const std::string place = pathOf(folderFd, name);
  for (const auto& [key, value] : present) {
    if (wanted.contains(key) || isSystems(key)) continue;
    if (::lremovexattr(place.c_str(), key.c_str()) == 0 || errno == ENODATA) continue;
    if (errno == EIO) return sys(errno);
    notApplied.push_back({path, "xattr " + key, std::strerror(errno)});
  }
  for (const auto& [key, value] : wanted) {
    if (const auto same = present.find(key); same != present.end() && same->second == value) continue;
    if (::lsetxattr(place.c_str(), key.c_str(), value.data(), value.size(), 0) == 0) continue;
    if (errno == EIO) return sys(errno);
    // ENOSPC as well: ext4 says it of a value that does not fit beside the inode, however empty the disk is.
    notApplied.push_back({path, "xattr " + key, std::strerror(errno)});
  }
  return Done{};
}

}  // namespace bough::base_commit
