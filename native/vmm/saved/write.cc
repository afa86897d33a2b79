// See write.h.
#include "native/vmm/saved/write.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "native/common/codec.h"
#include "native/common/crc32c.h"

namespace bough::vmm {
namespace {

Error failed(int errnum) {
  if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG) {
    return Error{errnum, "E_NO_SPACE",
                 std::string("The saved machine does not fit (") + std::strerror(errnum) +
                     "): free some space or save elsewhere; the machine itself is unharmed."};
  }
  return Error{errnum, "E_IO", std::string("The saved machine cannot be written: ") + std::strerror(errnum) + "."};
}

Result<Done> writeAll(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return Done{};
}

bool zero(std::string_view bytes) {
  // The first bytes are zero and each byte is equal to the one before.
  return bytes.front() == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

/// Writes the RAM with holes where it is zero. Answers the table: the checksum of each block.
Result<std::string> writeFullRam(int fd, const SavedHead& head, std::string_view ram, std::uint64_t& pages) {
  Encoder table;
  const std::string zeroes(kSavedBlock, '\0');
  const std::uint32_t zeroCrc = crc32c(zeroes);
  if (::ftruncate(fd, static_cast<off_t>(head.fileBytes())) != 0) return failed(errno);
  for (std::uint64_t at = 0; at < ram.size(); at += kSavedBlock) {
    const std::string_view block = ram.substr(at, kSavedBlock);
    if (zero(block)) {
      table.fixed32(zeroCrc);
      continue;
    }
    table.fixed32(crc32c(block));
    for (std::uint64_t page = 0; page < kSavedBlock;) {
      std::uint64_t end = page;
      while (end < kSavedBlock && !zero(block.substr(end, kSavedPage))) end += kSavedPage;
      if (end > page) BOUGH_TRY(writeAll(fd, block.substr(page, end - page), head.ramOffset() + at + page));
      pages += (end - page) / kSavedPage;
      page = end + kSavedPage;
    }
  }
  return table.take();
}

/// A read-only view of the base's RAM.
class BaseRam {
 public:
  explicit BaseRam(const SavedFile& base) : size_(base.head().ramBytes) {
    void* found =
        ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, base.fd(), static_cast<off_t>(base.head().ramOffset()));
    if (found != MAP_FAILED) data_ = static_cast<const char*>(found);
  }
  ~BaseRam() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  }
  BaseRam(const BaseRam&) = delete;
  BaseRam& operator=(const BaseRam&) = delete;
  const char* data() const { return data_; }

 private:
  std::size_t size_;
  const char* data_ = nullptr;
};

/// Writes the pages that differ, one after another. Answers the table: number and checksum of each.
Result<std::string> writeDiffRam(int fd, SavedHead& head, std::string_view ram, const SavedFile& base) {
  const BaseRam old(base);
  if (old.data() == nullptr) return failed(errno);
  Encoder table;
  const std::uint64_t all = ram.size() / kSavedPage;
  const auto differs = [&](std::uint64_t page) {
    return std::memcmp(ram.data() + page * kSavedPage, old.data() + page * kSavedPage, kSavedPage) != 0;
  };
  for (std::uint64_t page = 0; page < all;) {
    // A block at once: most are the same.
    if (page % (kSavedBlock / kSavedPage) == 0 &&
        std::memcmp(ram.data() + page * kSavedPage, old.data() + page * kSavedPage, kSavedBlock) == 0) {
      page += kSavedBlock / kSavedPage;
      continue;
    }
    std::uint64_t end = page;
    while (end < all && end - page < 512 && differs(end)) {
      table.fixed32(static_cast<std::uint32_t>(end));
      table.fixed32(crc32c(ram.substr(end * kSavedPage, kSavedPage)));
      end++;
    }
    if (end == page) {
      page++;
      continue;
    }
    const std::string_view run = ram.substr(page * kSavedPage, (end - page) * kSavedPage);
    BOUGH_TRY(writeAll(fd, run, head.ramOffset() + head.pages * kSavedPage));
    head.pages += end - page;
    page = end;
  }
  return table.take();
}

Result<Saved> write(int fd, const ToSave& machine, const SavedFile* base) {
  const std::span<std::byte> bytes = machine.memory.host();
  const std::string_view ram(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SavedHead head;
  head.kind = base == nullptr ? SavedKind::kFull : SavedKind::kDiff;
  head.cpuDigest = machine.cpuDigest;
  head.ramBytes = ram.size();
  head.configBytes = machine.config.size();
  head.stateBytes = machine.state.size();
  head.configCrc = crc32c(machine.config);
  head.stateCrc = crc32c(machine.state);
  if (::getrandom(head.identity.data(), head.identity.size(), 0) != static_cast<ssize_t>(head.identity.size())) {
    return failed(errno);
  }
  std::uint64_t written = 0;
  std::string table;
  if (base == nullptr) {
    head.pages = ram.size() / kSavedPage;
    BOUGH_ASSIGN(table, writeFullRam(fd, head, ram, written));
  } else {
    head.base = base->head().digest();
    BOUGH_ASSIGN(table, writeDiffRam(fd, head, ram, *base));
    written = head.pages;
  }
  head.tableCrc = crc32c(table);
  BOUGH_TRY(writeAll(fd, machine.config, head.configOffset()));
  BOUGH_TRY(writeAll(fd, machine.state, head.stateOffset()));
  BOUGH_TRY(writeAll(fd, table, head.tableOffset()));
  if (::fsync(fd) != 0) return failed(errno);
  BOUGH_TRY(writeAll(fd, head.encode(), 0));
  if (::fsync(fd) != 0) return failed(errno);
  return Saved{toText(head.digest()), head.fileBytes(), written};
}

}  // namespace

Result<Done> checkTarget(int fd) {
  struct stat status{};
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) == O_RDWR && (flags & O_APPEND) == 0 && ::fstat(fd, &status) == 0 &&
      S_ISREG(status.st_mode) && status.st_size == 0) {
    return Done{};
  }
  return Error{
      EINVAL, "E_SAVE_TARGET",
      "A machine is saved into an empty regular file that is open for reading and writing, not for appending."};
}

Result<Saved> writeSaved(int fd, const ToSave& machine, const SavedFile* base) {
  auto saved = write(fd, machine, base);
  // What does not fit must not keep the disk full.
  if (!saved && ::ftruncate(fd, 0) != 0) saved.error().message += " What was written could not be taken back.";
  return saved;
}

}  // namespace bough::vmm
