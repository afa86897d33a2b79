// The guest's RAM, and the only way into it: every address and length that a guest names is checked here. Used by the
// boot loader, the virtqueues, the saved state and the memslots.
//
// The RAM is one private anonymous mapping, so that fork(2) shares its pages copy-on-write. The guest may change it at
// any time from another thread: what is read is copied once and then checked, never checked and then read again.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "native/common/result.h"

namespace bough::vmm {

/// A guest-physical address.
enum class GuestAddress : std::uint64_t {};

constexpr std::uint64_t raw(GuestAddress address) { return static_cast<std::uint64_t>(address); }

/// `address + bytes`, or nothing where that wraps round.
constexpr std::optional<GuestAddress> advance(GuestAddress address, std::uint64_t bytes) {
  if (raw(address) + bytes < bytes) return std::nullopt;
  return GuestAddress{raw(address) + bytes};
}

/// One stretch of guest-physical addresses that is RAM; what KVM calls a memslot.
struct RamRegion {
  GuestAddress start{};
  std::size_t size = 0;
  std::byte* host = nullptr;
};

class GuestMemory {
 public:
  /// RAM ends here and goes on at 4 GiB, so that devices have addresses below 4 GiB.
  static constexpr std::uint64_t kLowEnd = 0xC000'0000;
  static constexpr std::uint64_t kHighStart = 0x1'0000'0000;
  static constexpr std::size_t kAlignment = std::size_t{2} << 20;

  /// `size` bytes of zeroes, a multiple of 2 MiB from 2 MiB to 1 TiB, aligned for huge pages. Errors: E_RAM_SIZE,
  /// E_NO_MEMORY.
  static Result<GuestMemory> anonymous(std::size_t size, bool hugePages);
  /// The same layout over `size` bytes of `fd` from `offset` (a multiple of the page size), MAP_PRIVATE: the file is
  /// never written, and its pages are read when they are first touched.
  static Result<GuestMemory> fromFile(int fd, std::uint64_t offset, std::size_t size);

  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory();

  std::size_t size() const { return size_; }
  /// In ascending order: one region, or two where the RAM is larger than kLowEnd.
  std::span<const RamRegion> regions() const { return regions_; }
  /// All RAM as one run of host memory, in the order of regions(); for saving and measuring only.
  std::span<std::byte> host() const { return {base_, size_}; }

  /// Whether [address, address + size) is RAM and within one region.
  bool contains(GuestAddress address, std::size_t size) const { return find(address, size) != nullptr; }

  /// Copies; false, with nothing copied, unless the whole range is RAM of one region.
  bool read(GuestAddress from, std::span<std::byte> to) const;
  bool write(GuestAddress to, std::span<const std::byte> from) const;
  bool fill(GuestAddress to, std::size_t size, std::byte value) const;

  /// One little-endian value, read or written as one access where its address is aligned.
  template <typename T>
  std::optional<T> load(GuestAddress from) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!read(from, std::as_writable_bytes(std::span<T, 1>(&value, 1)))) return std::nullopt;
    return value;
  }
  template <typename T>
  bool store(GuestAddress to, T value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return write(to, std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  /// A 16-bit ring index, with the ordering that virtqueues need (acquire on load, release on store). Nothing or false
  /// outside RAM or at an odd address.
  std::optional<std::uint16_t> loadAcquire16(GuestAddress from) const;
  bool storeRelease16(GuestAddress to, std::uint16_t value) const;

  /// For readv(2) and writev(2) straight from or into RAM: appends nothing and answers false unless all of it is RAM.
  bool appendTo(std::vector<iovec>& list, GuestAddress address, std::size_t size) const;

 private:
  GuestMemory(std::byte* mapping, std::size_t mapped, std::byte* base, std::size_t size);
  std::byte* find(GuestAddress address, std::size_t size) const;

  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::vector<RamRegion> regions_;
};

}  // namespace bough::vmm
