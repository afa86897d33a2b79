// See log_file.h.
#include "native/branchfs/log_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "native/common/codec.h"
#include "native/common/crc32c.h"

namespace bough {
namespace {

constexpr std::uint32_t kMagic = 0x4C474F42;
constexpr std::uint64_t kReserve = 256 * 1024;
constexpr std::uint64_t kAllocateStep = 1024 * 1024;

std::string header(std::string_view payload) {
  Encoder out;
  out.fixed32(kMagic);
  out.fixed32(static_cast<std::uint32_t>(payload.size()));
  out.fixed32(crc32c(payload));
  return out.take();
}

Error damaged(const std::string& name, std::uint64_t offset) {
  return Error{
      EIO, "E_STORE_DAMAGED",
      "The store's file " + name + " is damaged at byte " + std::to_string(offset) +
          ": the disk lost something that had been written. Restore the store from a backup, or move the folder "
          "away to start a new store."};
}

}  // namespace

std::string frameOf(std::string_view payload) {
  std::string frame = header(payload);
  frame.append(payload);
  return frame;
}

std::string_view frameAt(std::string_view data) {
  if (data.size() < kFrameHeader) return {};
  Decoder in(data.substr(0, kFrameHeader));
  const std::uint32_t magic = in.fixed32();
  const std::uint32_t size = in.fixed32();
  const std::uint32_t crc = in.fixed32();
  if (magic != kMagic || size > kMaxFrame || size > data.size() - kFrameHeader) return {};
  std::string_view payload = data.substr(kFrameHeader, size);
  return crc32c(payload) == crc ? payload : std::string_view{};
}

Result<std::unique_ptr<LogFile>> LogFile::open(int folderFd, const std::string& name, const FrameReader& reader) {
  UniqueFd fd(::openat(folderFd, name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return sysError(errno, "open " + name);
  BOUGH_ASSIGN(const MappedFile mapped, MappedFile::open(folderFd, name));
  const std::string_view data = mapped.data();

  std::uint64_t end = 0;
  while (end < data.size()) {
    const std::string_view payload = frameAt(data.substr(end));
    if (!payload.data()) break;
    BOUGH_TRY(reader.take(payload));
    end += kFrameHeader + payload.size();
  }
  if (end < data.size()) {
    // A mark further on that vouches for these bytes: then this is no torn tail.
    for (std::uint64_t at = end + 1; at + kFrameHeader <= data.size(); at++) {
      if (static_cast<unsigned char>(data[at]) != (kMagic & 0xFF)) continue;
      const std::string_view payload = frameAt(data.substr(at));
      if (payload.data() && reader.durableBefore(payload) > end) return damaged(name, end);
    }
    if (::ftruncate(fd.get(), static_cast<off_t>(end)) != 0) return sysError(errno, "cut the torn end of " + name);
  }
  return std::unique_ptr<LogFile>(new LogFile(std::move(fd), name, end));  // NOLINT: the constructor is private
}

LogFile::LogFile(UniqueFd fd, std::string name, std::uint64_t end)
    : fd_(std::move(fd)), name_(std::move(name)), end_(end), allocated_(end) {}

Result<> LogFile::keepReserve(std::uint64_t newEnd, bool useReserve) {
  if (!reserves_ || newEnd + kReserve <= allocated_) return Done{};
  for (std::uint64_t want : {newEnd + kAllocateStep, newEnd + kReserve}) {
    const std::uint64_t from = std::max(allocated_, end_.load());
    if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(want - from)) == 0) {
      allocated_ = want;
      return Done{};
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
      reserves_ = false;
      return Done{};
    }
  }
  if (useReserve) return Done{};
  const int code = errno;
  return Error{code, code == ENOSPC || code == EDQUOT ? "E_NO_SPACE" : "E_IO",
               "The disk of the store is full: free some space, or discard branches (an abort works on a full disk)."};
}

Result<> LogFile::append(std::string_view payload, bool useReserve) {
  if (payload.size() > kMaxFrame)
    return Error{EFBIG, "E_TOO_BIG", "The change is too large for one record of the log."};
  std::string head = header(payload);
  const std::lock_guard guard(lock_);
  if (broken_) return Error{EIO, "E_IO", "The store's log cannot be written since an earlier error: restart boughfs."};
  const std::uint64_t start = end_.load(std::memory_order_relaxed);
  const std::uint64_t newEnd = start + head.size() + payload.size();
  BOUGH_TRY(keepReserve(newEnd, useReserve));

  std::array<iovec, 2> parts{iovec{head.data(), head.size()}, iovec{const_cast<char*>(payload.data()), payload.size()}};
  std::uint64_t at = start;
  std::size_t part = 0;
  while (part < parts.size()) {
    const ssize_t n = ::pwritev(fd_.get(), &parts[part], static_cast<int>(parts.size() - part), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int code = n < 0 ? errno : EIO;
      if (::ftruncate(fd_.get(), static_cast<off_t>(start)) != 0) broken_ = true;
      allocated_ = std::min(allocated_, start);  // the cut may have given the reserve back
      return Error{code, code == ENOSPC || code == EDQUOT ? "E_NO_SPACE" : "E_IO",
                   "The store's log cannot be written: " + std::string(std::strerror(code)) + "."};
    }
    at += static_cast<std::uint64_t>(n);
    auto left = static_cast<std::size_t>(n);
    while (part < parts.size() && left >= parts[part].iov_len) left -= parts[part++].iov_len;
    if (part < parts.size()) {
      parts[part].iov_base = static_cast<char*>(parts[part].iov_base) + left;
      parts[part].iov_len -= left;
    }
  }
  end_.store(newEnd, std::memory_order_relaxed);
  return Done{};
}

Result<> LogFile::sync(const std::function<std::string(std::uint64_t offset)>& markOf) {
  const std::uint64_t wanted = size();
  const std::lock_guard guard(syncLock_);
  if (synced_.load(std::memory_order_relaxed) >= wanted) return Done{};  // another's sync took ours along
  const std::uint64_t offset = size();
  if (::fdatasync(fd_.get()) != 0) return sysError(errno, "sync the store's log");
  // A mark that cannot be written is no loss: it only helps to tell a torn tail from damage.
  const bool marked = append(markOf(offset), true).ok();
  std::uint64_t done = offset;
  if (marked && size() == offset + kFrameHeader + markOf(offset).size()) done = size();  // nothing but the mark is new
  synced_.store(done, std::memory_order_relaxed);
  return Done{};
}

Result<MappedFile> MappedFile::open(int folderFd, const std::string& name) {
  UniqueFd fd(::openat(folderFd, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return sysError(errno, "open " + name);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return sysError(errno, "stat " + name);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile(nullptr, 0);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) return sysError(errno, "map " + name);
  return MappedFile(at, size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (at_) ::munmap(at_, size_);
}

}  // namespace bough
