// See memory_use.h.
#include "native/vmm/control/memory_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "native/common/unique_fd.h"

namespace bough::vmm {
namespace {

std::optional<std::uint64_t> line(std::string_view text, std::string_view key) {
  const std::size_t at = text.find("\n" + std::string(key) + ":");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + key.size() + 2);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::uint64_t value = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<MemoryUse> parseMemoryUse(std::string_view rollup) {
  const auto rss = line(rollup, "Rss");
  const auto pss = line(rollup, "Pss");
  const auto own = line(rollup, "Private_Dirty");
  if (!rss || !pss || !own) return std::nullopt;
  return MemoryUse{*rss, *pss, *own};
}

std::optional<MemoryUse> memoryUse(int procFd) {
  // The jail's filter lets exactly this through: this folder, read only.
  const UniqueFd fd(procFd >= 0 ? ::openat(procFd, "self/smaps_rollup", O_RDONLY | O_CLOEXEC)
                                : ::open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::array<char, 4096> text{};
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  return parseMemoryUse({text.data(), size});
}

}  // namespace bough::vmm
