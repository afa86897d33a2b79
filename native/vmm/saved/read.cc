// See read.h.
#include "native/vmm/saved/read.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "native/common/codec.h"
#include "native/common/crc32c.h"

namespace bough::vmm {
namespace {

Error damaged(const std::string& what) {
  return Error{EINVAL, "E_SAVED_DAMAGED", "The saved machine is damaged (" + what + "): use another save."};
}

Error wrongBase(const std::string& why) {
  return Error{EINVAL, "E_SAVED_BASE", why + ": give the full save that the difference was made against."};
}

/// All of `size` bytes, or E_SAVED_TRUNCATED at the file's end.
Result<Done> readAll(int fd, char* to, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t n = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Error{errno, "E_IO", std::string("The saved machine cannot be read: ") + std::strerror(errno) + "."};
    if (n == 0) {
      return Error{EINVAL, "E_SAVED_TRUNCATED",
                   "The saved machine ends too early: copy it again, or use another save."};
    }
    to += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return Done{};
}

Result<std::string> section(int fd, std::uint64_t offset, std::uint64_t size, std::uint32_t crc, const char* what) {
  std::string bytes(size, '\0');
  BOUGH_TRY(readAll(fd, bytes.data(), bytes.size(), offset));
  if (crc32c(bytes) != crc) return damaged(std::string("the checksum of ") + what);
  return bytes;
}

std::uint32_t number(const std::string& table, std::uint64_t index) {
  Decoder in(std::string_view(table).substr(index * 4, 4));
  return in.fixed32();
}

}  // namespace

Result<SavedFile> SavedFile::open(UniqueFd fd) {
  SavedFile file;
  file.fd_ = std::move(fd);
  struct stat status{};
  if (::fstat(file.fd(), &status) != 0) return sysError(errno, "the saved machine");
  if (!S_ISREG(status.st_mode)) {
    return Error{EINVAL, "E_SAVED_FORMAT", "A saved machine must be a regular file, open for reading."};
  }
  std::string page(std::min<std::uint64_t>(kSavedPage, static_cast<std::uint64_t>(status.st_size)), '\0');
  BOUGH_TRY(readAll(file.fd(), page.data(), page.size(), 0));
  BOUGH_ASSIGN(file.head_, SavedHead::decode(page));
  const SavedHead& head = file.head_;
  if (static_cast<std::uint64_t>(status.st_size) != head.fileBytes()) {
    return Error{EINVAL, "E_SAVED_TRUNCATED",
                 "The saved machine has " + std::to_string(status.st_size) + " bytes and should have " +
                     std::to_string(head.fileBytes()) + ": copy it again, or use another save."};
  }
  BOUGH_ASSIGN(file.config_, section(file.fd(), head.configOffset(), head.configBytes, head.configCrc, "its shape"));
  BOUGH_ASSIGN(file.state_, section(file.fd(), head.stateOffset(), head.stateBytes, head.stateCrc, "its state"));
  BOUGH_ASSIGN(file.table_, section(file.fd(), head.tableOffset(), head.tableBytes(), head.tableCrc, "its table"));
  return file;
}

Result<Done> SavedFile::checkRam() const {
  const std::uint64_t blocks = head_.ramBytes / kSavedBlock;
  std::string block(kSavedBlock, '\0');
  const std::uint32_t zeroes = crc32c(block);
  const auto start = static_cast<off_t>(head_.ramOffset());
  off_t data = start;  // where the next byte that is no hole may be
  for (std::uint64_t i = 0; i < blocks; i++) {
    const off_t from = start + static_cast<off_t>(i * kSavedBlock);
    if (data < from + static_cast<off_t>(kSavedBlock)) {
      // Without SEEK_DATA all is data; ENXIO: nothing but holes until the end.
      const off_t next = ::lseek(fd_.get(), std::max(from, data), SEEK_DATA);
      data = next >= 0 ? next : errno == ENXIO ? INT64_MAX : from;
    }
    std::uint32_t crc = zeroes;
    if (data < from + static_cast<off_t>(kSavedBlock)) {
      BOUGH_TRY(readAll(fd_.get(), block.data(), block.size(), static_cast<std::uint64_t>(from)));
      crc = crc32c(block);
    }
    if (crc != number(table_, i)) return damaged("the memory at " + std::to_string(i * 2) + " MiB");
  }
  return Done{};
}

Result<std::vector<SavedFile::StoredPage>> SavedFile::storedPages() const {
  std::vector<StoredPage> pages;
  pages.reserve(head_.pages);
  for (std::uint64_t i = 0; i < head_.pages; i++) {
    const StoredPage next{number(table_, 2 * i), number(table_, 2 * i + 1)};
    if (next.page >= head_.ramBytes / kSavedPage || (!pages.empty() && next.page <= pages.back().page)) {
      return damaged("the order of its pages");
    }
    pages.push_back(next);
  }
  return pages;
}

Result<Done> checkRamOf(int fd) {
  UniqueFd own(::dup(fd));
  if (!own) return sysError(errno, "dup");
  BOUGH_ASSIGN(const SavedFile file, SavedFile::open(std::move(own)));
  return file.checkRam();
}

Result<Done> checkBase(const SavedFile& base, std::uint64_t ramBytes) {
  if (base.head().kind != SavedKind::kFull) return wrongBase("A difference cannot be the base of another");
  if (base.head().ramBytes != ramBytes) return wrongBase("The base is of a machine with another size of RAM");
  return Done{};
}

Result<GuestMemory> loadRam(const SavedFile& full, const SavedFile* diff, bool check) {
  BOUGH_TRY(checkBase(full, (diff != nullptr ? *diff : full).head().ramBytes));
  std::vector<SavedFile::StoredPage> pages;
  if (diff != nullptr) {
    if (diff->head().kind != SavedKind::kDiff || diff->head().base != full.head().digest()) {
      return wrongBase("The two saved machines do not belong together");
    }
    BOUGH_ASSIGN(pages, diff->storedPages());
  }
  if (check) BOUGH_TRY(full.checkRam());
  BOUGH_ASSIGN(GuestMemory memory, GuestMemory::fromFile(full.fd(), full.head().ramOffset(), full.head().ramBytes));
  const std::span<std::byte> ram = memory.host();
  for (std::size_t i = 0; i < pages.size(); i++) {
    char* to = reinterpret_cast<char*>(ram.data()) + pages[i].page * kSavedPage;
    BOUGH_TRY(readAll(diff->fd(), to, kSavedPage, diff->head().ramOffset() + i * kSavedPage));
    if (crc32c({to, kSavedPage}) != pages[i].crc) return damaged("page " + std::to_string(pages[i].page));
  }
  return memory;
}

}  // namespace bough::vmm
