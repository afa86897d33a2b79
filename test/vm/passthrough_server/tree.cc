// See tree.h.
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace passthrough {

std::optional<std::string> Tree::path(NodeId node) const {
  const std::lock_guard guard(lock_);
  if (node == 1) return ".";
  if (node < 1 || node >= paths_.size()) {
    errno = ESTALE;
    return std::nullopt;
  }
  return paths_[node];
}

std::optional<NodeId> Tree::lookup(NodeId parent, std::string_view name, struct stat& status) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos) {
    errno = EINVAL;
    return std::nullopt;
  }
  const auto folder = path(parent);
  if (!folder) return std::nullopt;
  const std::string full = parent == 1 ? std::string(name) : *folder + "/" + std::string(name);
  if (::fstatat(root_.get(), full.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  const std::lock_guard guard(lock_);
  const auto [entry, isNew] = numbers_.try_emplace(full, paths_.size());
  if (isNew) paths_.push_back(full);
  return entry->second;
}

bool Tree::status(NodeId node, struct stat& status) const {
  const auto name = path(node);
  return name && ::fstatat(root_.get(), name->c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::optional<std::string> Tree::target(NodeId node) const {
  const auto name = path(node);
  std::array<char, PATH_MAX> text{};
  const ssize_t size = name ? ::readlinkat(root_.get(), name->c_str(), text.data(), text.size()) : -1;
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

UniqueFd Tree::open(NodeId node, int flags) const {
  const auto name = path(node);
  return UniqueFd(name ? ::openat(root_.get(), name->c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) : -1);
}

std::optional<std::vector<Entry>> Tree::list(NodeId node) const {
  UniqueFd folder = open(node, O_RDONLY | O_DIRECTORY);
  if (!folder) return std::nullopt;
  DIR* stream = ::fdopendir(folder.get());
  if (stream == nullptr) return std::nullopt;
  folder.release();
  std::vector<Entry> entries;
  while (const dirent* each = ::readdir(stream)) entries.push_back({each->d_name, each->d_ino, each->d_type});
  ::closedir(stream);
  // "." and ".." sort before most names, not before all.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    const auto rank = [](const Entry& entry) { return entry.name == "." ? 0 : entry.name == ".." ? 1 : 2; };
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.name < b.name;
  });
  return entries;
}

}  // namespace passthrough
