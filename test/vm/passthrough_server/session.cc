// See session.h.
#include "session.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace passthrough {

namespace {

constexpr std::uint32_t kRequestMagic = 0x31514642;
constexpr std::uint32_t kAnswerMagic = 0x31414642;
constexpr std::uint32_t kLargestRequest = 16u << 20;
constexpr std::size_t kMostKept = 256;
/// Nothing changes the folder while a test runs.
constexpr std::uint64_t kValidSeconds = 3600;

struct RequestHead {
  std::uint32_t magic, size, room, reserved;
};
struct AnswerHead {
  std::uint32_t magic, size;
};

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// What a newer kernel adds at the end is left alone, what an older one does not have is zero.
template <typename T>
T leading(std::string_view body) {
  T value{};
  std::memcpy(&value, body.data(), std::min(body.size(), sizeof value));
  return value;
}

fuse_attr attributes(const struct stat& from) {
  fuse_attr to{};
  to.ino = from.st_ino;
  to.size = static_cast<std::uint64_t>(from.st_size);
  to.blocks = static_cast<std::uint64_t>(from.st_blocks);
  to.atime = static_cast<std::uint64_t>(from.st_atim.tv_sec);
  to.mtime = static_cast<std::uint64_t>(from.st_mtim.tv_sec);
  to.ctime = static_cast<std::uint64_t>(from.st_ctim.tv_sec);
  to.atimensec = static_cast<std::uint32_t>(from.st_atim.tv_nsec);
  to.mtimensec = static_cast<std::uint32_t>(from.st_mtim.tv_nsec);
  to.ctimensec = static_cast<std::uint32_t>(from.st_ctim.tv_nsec);
  to.mode = from.st_mode;
  to.nlink = static_cast<std::uint32_t>(from.st_nlink);
  to.uid = from.st_uid;
  to.gid = from.st_gid;
  // As the kernel packs a device number (new_encode_dev).
  to.rdev = (minor(from.st_rdev) & 0xFF) | (major(from.st_rdev) << 8) | ((minor(from.st_rdev) & ~0xFFu) << 12);
  to.blksize = static_cast<std::uint32_t>(from.st_blksize);
  return to;
}

fuse_entry_out entry(NodeId node, const struct stat& status) {
  fuse_entry_out out{};
  out.nodeid = node;
  out.entry_valid = out.attr_valid = kValidSeconds;
  out.attr = attributes(status);
  return out;
}

}  // namespace

bool Session::receive(std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::recv(socket_.get(), to.data(), to.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

void Session::run() {
  for (;;) {
    RequestHead head{};
    fuse_in_header header{};
    if (!receive(std::as_writable_bytes(std::span(&head, 1)))) return;
    if (head.magic != kRequestMagic || head.size < sizeof header || head.size > kLargestRequest) return;
    request_.resize(head.size);
    if (!receive(std::as_writable_bytes(std::span(request_)))) return;
    std::memcpy(&header, request_.data(), sizeof header);
    if (header.len != head.size) return;
    if (!handle(header, std::string_view(request_).substr(sizeof header), head.room)) return;
  }
}

bool Session::handle(const fuse_in_header& header, std::string_view body, std::uint32_t room) {
  if (room == 0) return true;  // FORGET, BATCH_FORGET, INTERRUPT: nothing here is counted, nothing takes long
  std::string out;
  const std::size_t data = room > sizeof(fuse_out_header) ? room - sizeof(fuse_out_header) : 0;
  const int error = dispatch(header, body, data, out);
  if (error != 0) return answerError(header.unique, -error);
  return answer(header.unique, out);
}

bool Session::answer(std::uint64_t unique, std::string_view data) {
  const auto size = static_cast<std::uint32_t>(sizeof(fuse_out_header) + data.size());
  std::string record;
  record.reserve(sizeof(AnswerHead) + size);
  append(record, AnswerHead{kAnswerMagic, size});
  append(record, fuse_out_header{size, 0, unique});
  record += data;
  std::string_view left = record;
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Session::answerError(std::uint64_t unique, int errnum) {
  std::string record;
  append(record, AnswerHead{kAnswerMagic, sizeof(fuse_out_header)});
  append(record, fuse_out_header{sizeof(fuse_out_header), -errnum, unique});
  return ::send(socket_.get(), record.data(), record.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(record.size());
}

int Session::dispatch(const fuse_in_header& header, std::string_view body, std::size_t room, std::string& out) {
  switch (header.opcode) {
    case FUSE_INIT:
      return init(body, out);
    case FUSE_DESTROY:
      return 0;
    case FUSE_LOOKUP:
      return lookup(header.nodeid, body, out);
    case FUSE_GETATTR:
      return getAttributes(header.nodeid, out);
    case FUSE_READLINK: {
      const auto target = tree_.target(header.nodeid);
      if (!target) return -errno;
      out = *target;
      return 0;
    }
    case FUSE_READ:
      return read(header.nodeid, body, room, out);
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
      return readFolder(header.nodeid, body, header.opcode == FUSE_READDIRPLUS, room, out);
    case FUSE_STATFS:
      return statistics(out);
    // The kernel goes on without these and does not ask again.
    case FUSE_OPEN:
    case FUSE_OPENDIR:
    case FUSE_ACCESS:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR:
    case FUSE_LSEEK:
    case FUSE_IOCTL:
    case FUSE_POLL:
    case FUSE_SYNCFS:
      return -ENOSYS;
    default:
      return -EROFS;
  }
}

int Session::init(std::string_view body, std::string& out) {
  const auto in = leading<fuse_init_in>(body);
  if (in.major != FUSE_KERNEL_VERSION) return -EPROTO;
  fuse_init_out answer{};
  answer.major = FUSE_KERNEL_VERSION;
  answer.minor = std::min<std::uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
  answer.max_readahead = in.max_readahead;
  answer.flags = in.flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO |
                             FUSE_PARALLEL_DIROPS | FUSE_CACHE_SYMLINKS | FUSE_NO_OPEN_SUPPORT |
                             FUSE_NO_OPENDIR_SUPPORT | FUSE_MAX_PAGES);
  answer.max_background = 64;
  answer.congestion_threshold = 48;
  answer.max_write = 1 << 20;
  answer.max_pages = 256;
  answer.time_gran = 1;
  append(out, answer);
  return 0;
}

int Session::lookup(NodeId parent, std::string_view body, std::string& out) {
  const std::size_t end = body.find('\0');
  if (end == std::string_view::npos) return -EINVAL;
  struct stat status{};
  const auto node = tree_.lookup(parent, body.substr(0, end), status);
  if (!node) return -errno;
  append(out, entry(*node, status));
  return 0;
}

int Session::getAttributes(NodeId node, std::string& out) {
  struct stat status{};
  if (!tree_.status(node, status)) return -errno;
  fuse_attr_out answer{};
  answer.attr_valid = kValidSeconds;
  answer.attr = attributes(status);
  append(out, answer);
  return 0;
}

int Session::read(NodeId node, std::string_view body, std::size_t room, std::string& out) {
  const auto in = leading<fuse_read_in>(body);
  auto found = files_.find(node);
  if (found == files_.end()) {
    UniqueFd file = tree_.open(node, O_RDONLY);
    if (!file) return -errno;
    if (files_.size() >= kMostKept) files_.clear();
    found = files_.emplace(node, std::move(file)).first;
  }
  out.resize(std::min<std::size_t>(in.size, room));
  const ssize_t got = ::pread(found->second.get(), out.data(), out.size(), static_cast<off_t>(in.offset));
  if (got < 0) return -errno;
  out.resize(static_cast<std::size_t>(got));
  return 0;
}

const std::vector<Entry>* Session::listing(NodeId node, bool fresh) {
  const auto found = listings_.find(node);
  if (found != listings_.end() && !fresh) return &found->second;
  auto entries = tree_.list(node);
  if (!entries) return nullptr;
  if (listings_.size() >= kMostKept) listings_.clear();
  return &(listings_[node] = std::move(*entries));
}

int Session::readFolder(NodeId node, std::string_view body, bool plus, std::size_t room, std::string& out) {
  const auto in = leading<fuse_read_in>(body);
  const std::vector<Entry>* entries = listing(node, in.offset == 0);
  if (entries == nullptr) return -errno;
  const std::size_t most = std::min<std::size_t>(in.size, room);
  for (std::uint64_t i = in.offset; i < entries->size(); i++) {
    const Entry& each = (*entries)[i];
    const std::size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    const std::size_t size = FUSE_REC_ALIGN(head + each.name.size());
    if (out.size() + size > most) break;
    if (plus) {
      struct stat status{};
      const bool itself = each.name == "." || each.name == "..";
      const auto child = itself ? std::nullopt : tree_.lookup(node, each.name, status);
      // No node: the kernel looks it up by itself if it wants to.
      append(out, child ? entry(*child, status) : fuse_entry_out{});
    }
    fuse_dirent record{};
    record.ino = each.inode;
    record.off = i + 1;
    record.namelen = static_cast<std::uint32_t>(each.name.size());
    record.type = each.type;
    out.append(reinterpret_cast<const char*>(&record), FUSE_NAME_OFFSET);
    out += each.name;
    out.resize(out.size() + size - head - each.name.size());
  }
  return 0;
}

int Session::statistics(std::string& out) {
  const UniqueFd root = tree_.open(1, O_RDONLY | O_DIRECTORY);
  struct statvfs status{};
  if (!root || ::fstatvfs(root.get(), &status) != 0) return -errno;
  fuse_statfs_out answer{};
  answer.st.blocks = status.f_blocks;
  answer.st.files = status.f_files;
  answer.st.bsize = static_cast<std::uint32_t>(status.f_bsize);
  answer.st.frsize = static_cast<std::uint32_t>(status.f_frsize);
  answer.st.namelen = static_cast<std::uint32_t>(status.f_namemax);
  append(out, answer);
  return 0;
}

}  // namespace passthrough
