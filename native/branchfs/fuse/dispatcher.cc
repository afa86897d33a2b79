// The dispatcher's table, INIT and forgets; see dispatcher.h.
#include "native/branchfs/fuse/dispatcher.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "native/branchfs/fuse/call.h"

namespace bough::fuse {
namespace {

constexpr std::size_t kOperations = 64;

constexpr std::array<Operation, kOperations> makeTable() {
  std::array<Operation, kOperations> table{};
  table[FUSE_LOOKUP] = lookup;
  table[FUSE_GETATTR] = getattr;
  table[FUSE_SETATTR] = setattr;
  table[FUSE_READLINK] = readlink;
  table[FUSE_SYMLINK] = symlink;
  table[FUSE_MKNOD] = mknod;
  table[FUSE_MKDIR] = mkdir;
  table[FUSE_UNLINK] = unlink;
  table[FUSE_RMDIR] = rmdir;
  table[FUSE_RENAME] = rename;
  table[FUSE_LINK] = link;
  table[FUSE_OPEN] = open;
  table[FUSE_READ] = read;
  table[FUSE_WRITE] = write;
  table[FUSE_STATFS] = statfs;
  table[FUSE_RELEASE] = release;
  table[FUSE_FSYNC] = fsync;
  table[FUSE_SETXATTR] = setxattr;
  table[FUSE_GETXATTR] = getxattr;
  table[FUSE_LISTXATTR] = listxattr;
  table[FUSE_REMOVEXATTR] = removexattr;
  table[FUSE_OPENDIR] = opendir;
  table[FUSE_READDIR] = readdir;
  table[FUSE_RELEASEDIR] = releasedir;
  table[FUSE_FSYNCDIR] = fsyncdir;
  table[FUSE_CREATE] = create;
  table[FUSE_FALLOCATE] = fallocate;
  table[FUSE_READDIRPLUS] = readdirplus;
  table[FUSE_RENAME2] = rename2;
  table[FUSE_LSEEK] = lseek;
  table[FUSE_COPY_FILE_RANGE] = copyFileRange;
  table[FUSE_SYNCFS] = syncfs;
  table[FUSE_TMPFILE] = tmpfile;
  table[kOpStatx] = statx;
  table[kOpCopyFileRange64] = copyFileRange64;
  // FUSE_IOCTL: no ioctl of the agent's may reach anything. The rest is not there, and ENOSYS makes the kernel stop
  // asking: FLUSH (close is cheap), ACCESS (default_permissions checks), GETLK and SETLK (locks stay in the kernel),
  // BMAP, POLL (always ready), INTERRUPT (every request ends by itself and cannot be half undone).
  table[FUSE_IOCTL] = [](Call&) { return ENOTTY; };
  return table;
}
constexpr auto kTable = makeTable();

// What we want of the kernel, if it has it. Left out on purpose: WRITEBACK_CACHE (a dirty page that the kernel keeps
// would miss a branch point), POSIX_ACL, POSIX_LOCKS and FLOCK_LOCKS (the kernel's own locks are right as one mount is
// one branch), NO_OPEN and NO_OPENDIR, AUTO_INVAL_DATA (it drops the cache after each of our own writes).
constexpr std::uint32_t kWantedFlags = FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES | FUSE_DO_READDIRPLUS |
                                       FUSE_READDIRPLUS_AUTO | FUSE_ASYNC_DIO | FUSE_PARALLEL_DIROPS |
                                       FUSE_ABORT_ERROR | FUSE_MAX_PAGES | FUSE_CACHE_SYMLINKS |
                                       FUSE_EXPLICIT_INVAL_DATA | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT;

std::size_t finish(const fuse_in_header& header, std::span<std::byte> answer, int errnum, std::size_t body) {
  fuse_out_header out{};
  out.len = static_cast<std::uint32_t>(sizeof(out) + (errnum == 0 ? body : 0));
  out.error = -errnum;
  out.unique = header.unique;
  std::memcpy(answer.data(), &out, sizeof(out));
  return out.len;
}

}  // namespace

int Dispatcher::init(Call& call) {
  auto in = call.in.take<fuse_init_in>();
  if (!in) {
    // Before 7.36 the request was shorter: major, minor, max_readahead, flags.
    struct Short {
      std::uint32_t major, minor, max_readahead, flags;
    };
    auto old = call.in.take<Short>();
    if (!old) return EINVAL;
    in = fuse_init_in{};
    in->major = old->major;
    in->minor = old->minor;
    in->max_readahead = old->max_readahead;
    in->flags = old->flags;
  }
  if (in->major < kMajor || (in->major == kMajor && in->minor < kOldestMinor)) return EPROTO;
  fuse_init_out out{};
  out.major = kMajor;
  out.minor = kMinor;
  if (in->major > kMajor) {
    // The kernel asks again with what we answered.
    return call.out.put(out) ? 0 : EIO;
  }
  if (!(in->flags & FUSE_SETXATTR_EXT) || !(in->flags & FUSE_MAX_PAGES)) return EPROTO;
  out.minor = std::min(kMinor, in->minor);
  out.max_readahead = std::min(in->max_readahead, kMaxTransfer);
  out.flags = in->flags & kWantedFlags;
  out.max_background = 64;
  out.congestion_threshold = 48;
  out.max_write = kMaxTransfer;
  out.time_gran = 1;
  out.max_pages = static_cast<std::uint16_t>(kMaxTransfer / 4096);
  agreed_.store(true, std::memory_order_release);
  return call.out.put(out) ? 0 : EIO;
}

std::size_t Dispatcher::handle(std::span<const std::byte> request, std::span<std::byte> answer) {
  if (request.size() < sizeof(fuse_in_header) || answer.size() < kAnswerBytes) return 0;
  fuse_in_header header;
  std::memcpy(&header, request.data(), sizeof(header));
  if (header.len != request.size()) return finish(header, answer, EINVAL, 0);
  auto body = request.subspan(sizeof(header));
  // Extensions follow the arguments; we asked for none.
  const std::size_t extensions = std::size_t{header.total_extlen} * 8;
  if (extensions > body.size()) return finish(header, answer, EINVAL, 0);
  body = body.first(body.size() - extensions);

  Call call{fs_, held_, header, RequestReader(body), AnswerWriter(answer.subspan(sizeof(fuse_out_header)))};
  switch (header.opcode) {
    case FUSE_INIT: {
      if (agreed()) return finish(header, answer, EIO, 0);
      const int errnum = init(call);
      return finish(header, answer, errnum, call.out.used());
    }
    case FUSE_FORGET: {
      if (auto in = call.in.take<fuse_forget_in>()) {
        if (auto n = held_.forget(header.nodeid, in->nlookup)) fs_.forget(header.nodeid, n);
      }
      return 0;
    }
    case FUSE_BATCH_FORGET: {
      auto in = call.in.take<fuse_batch_forget_in>();
      for (std::uint32_t i = 0; in && i < in->count; ++i) {
        auto one = call.in.take<fuse_forget_one>();
        if (!one) break;
        if (auto n = held_.forget(one->nodeid, one->nlookup)) fs_.forget(one->nodeid, n);
      }
      return 0;
    }
    case FUSE_DESTROY:
      return finish(header, answer, 0, 0);
    default:
      break;
  }
  if (!agreed()) return finish(header, answer, EIO, 0);
  if (header.opcode >= kOperations || kTable[header.opcode] == nullptr) return finish(header, answer, ENOSYS, 0);
  const int errnum = kTable[header.opcode](call);
  return finish(header, answer, errnum, call.out.used());
}

}  // namespace bough::fuse
