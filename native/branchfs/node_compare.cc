// See node_compare.h.
#include "native/branchfs/node_compare.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

namespace bough {
namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr std::size_t kBinaryProbe = 8000;

bool sameXattrs(const Node& a, const Node& b) {
  static const Xattrs kNone;
  return a.xattrs == b.xattrs || (a.xattrs ? *a.xattrs : kNone) == (b.xattrs ? *b.xattrs : kNone);
}

ssize_t readAt(int fd, char* out, std::size_t size, off_t at) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, out + done, size - done, at + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

NodeDifference NodeCompare::compare(const Node& a, const Node& b) const {
  NodeDifference result;
  if (a.kind != b.kind) {
    result.type = true;
    return result;
  }
  result.mode = a.mode != b.mode && a.kind != Kind::Symlink;
  result.owner = a.uid != b.uid || a.gid != b.gid;
  result.xattr = !sameXattrs(a, b);
  result.target = a.kind == Kind::Symlink && a.target != b.target;
  if (a.kind == Kind::CharDevice || a.kind == Kind::BlockDevice) result.content = a.rdev != b.rdev;
  if (a.kind == Kind::File) result.content = !sameContent(a, b);
  return result;
}

bool NodeCompare::sameContent(const Node& a, const Node& b) const {
  if (a.content == b.content && a.content.where == Content::Where::Object) return true;
  if (a.content == b.content && a.content.where == Content::Where::Base) {
    // One and the same place, but was it the same file at both times? (A ctime alone moves with every hard link.)
    const Identity& one = a.identity;
    const Identity& two = b.identity;
    if (!one.known || !two.known) return true;
    return one.dev == two.dev && one.ino == two.ino && one.size == two.size && one.mtime == two.mtime;
  }
  if (size(a) != size(b)) return false;
  if (size(a) == 0) return true;
  const auto one = open(a);
  const auto two = open(b);
  if (!one || !two) return false;
  std::array<std::unique_ptr<char[]>, 2> pieces = {std::make_unique<char[]>(kPiece), std::make_unique<char[]>(kPiece)};
  for (off_t at = 0;; at += static_cast<off_t>(kPiece)) {
    const ssize_t n = readAt((*one)->get(), pieces[0].get(), kPiece, at);
    const ssize_t m = readAt((*two)->get(), pieces[1].get(), kPiece, at);
    if (n < 0 || n != m || std::memcmp(pieces[0].get(), pieces[1].get(), static_cast<std::size_t>(n)) != 0)
      return false;
    if (n < static_cast<ssize_t>(kPiece)) return true;
  }
}

std::uint64_t NodeCompare::size(const Node& node) const {
  if (node.kind != Kind::File) return 0;
  switch (node.content.where) {
    case Content::Where::Object: {
      const auto status = objects_.stat(node.content.object);
      return status ? static_cast<std::uint64_t>(status->st_size) : node.size;
    }
    case Content::Where::Base: {
      const auto status = base_.stat(node.content.base);
      return status ? status->size : node.size;
    }
    case Content::Where::Nothing:
      break;
  }
  return node.size;
}

Result<SharedFd> NodeCompare::open(const Node& node) const {
  if (node.content.where == Content::Where::Object) return objects_.get(node.content.object);
  if (node.content.where != Content::Where::Base) return sys(EINVAL);
  BOUGH_ASSIGN(UniqueFd fd, base_.openFile(node.content.base));
  return std::make_shared<const UniqueFd>(std::move(fd));
}

Result<std::string> NodeCompare::read(const Node& node, std::size_t max) const {
  if (node.kind != Kind::File || size(node) == 0) return std::string();
  BOUGH_ASSIGN(const SharedFd fd, open(node));
  std::string data(static_cast<std::size_t>(std::min<std::uint64_t>(max, size(node))), '\0');
  const ssize_t n = readAt(fd->get(), data.data(), data.size(), 0);
  if (n < 0) return sysError(errno, "read a file's data");
  data.resize(static_cast<std::size_t>(n));
  return data;
}

bool NodeCompare::binary(const Node& node) const {
  const auto head = read(node, kBinaryProbe);
  return head && head->find('\0') != std::string::npos;
}

}  // namespace bough
