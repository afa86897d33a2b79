// See guest_memory.h.
#include "native/vmm/memory/guest_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

namespace bough::vmm {

namespace {

constexpr std::size_t kLargest = std::size_t{1} << 40;

Result<Done> checkSize(std::size_t size) {
  if (size >= GuestMemory::kAlignment && size <= kLargest && size % GuestMemory::kAlignment == 0) return Done{};
  return Error{
      EINVAL, "E_RAM_SIZE",
      "a machine cannot have " + std::to_string(size) + " bytes of RAM: give a multiple of 2 MiB, from 2 MiB to 1 TiB"};
}

Error noMemory(std::size_t size, int errnum) {
  return Error{errnum, "E_NO_MEMORY",
               "the host has no room for " + std::to_string(size >> 20) + " MiB of guest RAM (" +
                   std::strerror(errnum) + "): give the machine less RAM or end another one"};
}

}  // namespace

Result<GuestMemory> GuestMemory::anonymous(std::size_t size, bool hugePages) {
  BOUGH_TRY(checkSize(size));
  // NORESERVE: with strict accounting a fork would need room for all of the RAM again, though it shares it.
  const std::size_t mapped = size + kAlignment;
  void* found = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return noMemory(size, errno);
  auto* mapping = static_cast<std::byte*>(found);
  const std::size_t skip = (kAlignment - reinterpret_cast<std::uintptr_t>(mapping) % kAlignment) % kAlignment;
  GuestMemory memory(mapping, mapped, mapping + skip, size);
  // Advice only: a kernel without huge pages says EINVAL, and the machine is slower to fork.
  if (hugePages)
    ::madvise(memory.base_, size, MADV_HUGEPAGE);
  else
    ::madvise(memory.base_, size, MADV_NOHUGEPAGE);
  // Guest RAM in a core file would be the guest's secrets on disk.
  ::madvise(memory.base_, size, MADV_DONTDUMP);
  return memory;
}

Result<GuestMemory> GuestMemory::fromFile(int fd, std::uint64_t offset, std::size_t size) {
  BOUGH_TRY(checkSize(size));
  void* found =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (found == MAP_FAILED) return noMemory(size, errno);
  auto* mapping = static_cast<std::byte*>(found);
  GuestMemory memory(mapping, size, mapping, size);
  ::madvise(mapping, size, MADV_DONTDUMP);
  return memory;
}

GuestMemory::GuestMemory(std::byte* mapping, std::size_t mapped, std::byte* base, std::size_t size)
    : mapping_(mapping), mapped_(mapped), base_(base), size_(size) {
  const std::size_t low = std::min<std::size_t>(size, kLowEnd);
  regions_.push_back({GuestAddress{0}, low, base});
  if (size > low) regions_.push_back({GuestAddress{kHighStart}, size - low, base + low});
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      regions_(std::exchange(other.regions_, {})) {}

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(regions_, other.regions_);
  return *this;
}

GuestMemory::~GuestMemory() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

std::byte* GuestMemory::find(GuestAddress address, std::size_t size) const {
  for (const RamRegion& region : regions_) {
    if (raw(address) < raw(region.start)) continue;
    const std::uint64_t offset = raw(address) - raw(region.start);
    if (offset <= region.size && size <= region.size - offset) return region.host + offset;
  }
  return nullptr;
}

bool GuestMemory::read(GuestAddress from, std::span<std::byte> to) const {
  const std::byte* host = find(from, to.size());
  if (host == nullptr) return false;
  if (!to.empty()) std::memcpy(to.data(), host, to.size());
  return true;
}

bool GuestMemory::write(GuestAddress to, std::span<const std::byte> from) const {
  std::byte* host = find(to, from.size());
  if (host == nullptr) return false;
  if (!from.empty()) std::memcpy(host, from.data(), from.size());
  return true;
}

bool GuestMemory::fill(GuestAddress to, std::size_t size, std::byte value) const {
  std::byte* host = find(to, size);
  if (host == nullptr) return false;
  std::memset(host, static_cast<int>(value), size);
  return true;
}

std::optional<std::uint16_t> GuestMemory::loadAcquire16(GuestAddress from) const {
  std::byte* host = raw(from) % 2 == 0 ? find(from, 2) : nullptr;
  if (host == nullptr) return std::nullopt;
  // Aligned and in RAM, and the guest's other vCPUs change it too: an atomic access is what the ring's protocol asks
  // for.
  return std::atomic_ref<std::uint16_t>(*reinterpret_cast<std::uint16_t*>(host)).load(std::memory_order_acquire);
}

bool GuestMemory::storeRelease16(GuestAddress to, std::uint16_t value) const {
  std::byte* host = raw(to) % 2 == 0 ? find(to, 2) : nullptr;
  if (host == nullptr) return false;
  std::atomic_ref<std::uint16_t>(*reinterpret_cast<std::uint16_t*>(host)).store(value, std::memory_order_release);
  return true;
}

bool GuestMemory::appendTo(std::vector<iovec>& list, GuestAddress address, std::size_t size) const {
  std::byte* host = find(address, size);
  if (host == nullptr) return false;
  if (size > 0) list.push_back({host, size});
  return true;
}

}  // namespace bough::vmm
