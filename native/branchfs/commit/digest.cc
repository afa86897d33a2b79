// treeDigest of base_commit.h: says whether anything below a folder changed.
#include <fcntl.h>

#include <cerrno>

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/commit/place.h"
#include "native/branchfs/commit/xattrs.h"
#include "native/common/codec.h"

namespace bough {

namespace {

using base_commit::Found;

// FNV-1a, 64 bit: it has to tell an honest change, not to withstand somebody who looks for a collision.
constexpr std::uint64_t kOffset = 0xcbf29ce484222325ULL;
constexpr std::uint64_t kPrime = 0x100000001b3ULL;

void mix(std::uint64_t& hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
}

Result<> walk(int folderFd, std::uint64_t& hash) {
  BOUGH_ASSIGN(const std::vector<std::string> below, base_commit::names(folderFd));
  Encoder entry;
  for (const std::string& name : below) {
    BOUGH_ASSIGN(const Found found, base_commit::look(folderFd, name));
    if (!found.exists) continue;
    entry.clear();
    entry.bytes(name);
    entry.byte(static_cast<std::uint8_t>(found.kind));
    entry.number(found.identity.ino);
    entry.number(found.identity.size);
    entry.number(found.mode);
    entry.number(found.uid);
    entry.number(found.gid);
    entry.signedNumber(found.identity.mtime.sec);
    entry.number(found.identity.mtime.nsec);
    BOUGH_ASSIGN(const Xattrs xattrs, base_commit::readXattrs(folderFd, name));
    for (const auto& [key, value] : xattrs) {
      entry.bytes(key);
      entry.bytes(value);
    }
    mix(hash, entry.str());
    if (found.kind != Kind::Directory || found.mountPoint) continue;
    const UniqueFd folder(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno == EACCES) continue;  // its own ctime has to do
    if (!folder) return sys(errno);
    mix(hash, "(");
    BOUGH_TRY(walk(folder.get(), hash));
    mix(hash, ")");
  }
  return Done{};
}

}  // namespace

Result<std::uint64_t> treeDigest(int folderFd) {
  std::uint64_t hash = kOffset;
  BOUGH_TRY(walk(folderFd, hash));
  return hash;
}

}  // namespace bough
