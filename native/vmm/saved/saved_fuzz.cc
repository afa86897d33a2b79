// libFuzzer: a saved machine that anybody may have made. Input: a file, of which the first four bytes say how the rest
// is laid out, so that checksums do not keep the fuzzer from what is behind them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "native/common/crc32c.h"
#include "native/vmm/saved/read.h"

namespace {

using bough::UniqueFd;
using bough::vmm::SavedFile;

UniqueFd fileOf(const std::string& bytes) {
  UniqueFd fd(::memfd_create("saved", MFD_CLOEXEC));
  if (!fd || ::pwrite(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
  return fd;
}

/// A head with the right checksum over whatever fields the fuzzer chose.
void mendHead(std::string& bytes) {
  constexpr std::size_t kHeadBytes = 112;
  if (bytes.size() < kHeadBytes + 4) return;
  const std::uint32_t crc = bough::crc32c(std::string_view(bytes).substr(0, kHeadBytes));
  for (std::size_t i = 0; i < 4; i++) bytes[kHeadBytes + i] = static_cast<char>(crc >> (8 * i));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // The first page, and after it what the fuzzer has left; a sparse end up to 8 MiB where it asks for one.
  if ((data[0] & 1) != 0) mendHead(bytes);
  UniqueFd fd = fileOf(bytes);
  if ((data[0] & 2) != 0 && ::ftruncate(fd.get(), (data[0] >> 2) * (std::int64_t{1} << 17)) != 0) std::abort();
  auto file = SavedFile::open(std::move(fd));
  if (!file) {
    if (file.error().code.empty() || file.error().message.empty()) std::abort();
    return 0;
  }
  if (file->head().kind == bough::vmm::SavedKind::kDiff) {
    [[maybe_unused]] const auto pages = file->storedPages();
  } else if (file->head().ramBytes <= std::uint64_t{64} << 20) {
    [[maybe_unused]] const auto memory = bough::vmm::loadRam(*file, nullptr, true);
  }
  return 0;
}
