// Where the parts of a split virtqueue are in guest memory (VIRTIO 1.2, section 2.7). Used by queue.cc, and by the
// tests, which play the driver.
#pragma once

#include <cstdint>

namespace bough::vmm::ring {

/// Section 2.7.5, the virtqueue descriptor table: one entry. Little endian, as everything here.
struct Descriptor {
  std::uint64_t address;
  std::uint32_t size;
  std::uint16_t flags;
  std::uint16_t next;
};
static_assert(sizeof(Descriptor) == 16);

enum DescriptorFlag : std::uint16_t { kNext = 1, kWrite = 2, kIndirect = 4 };

/// Section 2.7.8, the used ring: one element.
struct UsedElement {
  std::uint32_t head;
  std::uint32_t written;
};

// Section 2.7.6, the available ring: flags, index, ring[size], used_event. Section 2.7.8: flags, index, ring[size],
// avail_event.
constexpr std::uint64_t kFlags = 0;
constexpr std::uint64_t kIndex = 2;
constexpr std::uint64_t kRing = 4;

constexpr std::uint64_t availableEntry(std::uint16_t slot) { return kRing + std::uint64_t{2} * slot; }
constexpr std::uint64_t usedEntry(std::uint16_t slot) { return kRing + std::uint64_t{8} * slot; }
/// Section 2.7.7: where the driver says with which used index it wants an interrupt, and 2.7.10: where the device says
/// with which available index it wants a kick.
constexpr std::uint64_t usedEvent(std::uint16_t size) { return availableEntry(size); }
constexpr std::uint64_t availableEvent(std::uint16_t size) { return usedEntry(size); }

constexpr std::uint64_t descriptorTableSize(std::uint16_t size) { return sizeof(Descriptor) * std::uint64_t{size}; }
constexpr std::uint64_t availableRingSize(std::uint16_t size) { return usedEvent(size) + 2; }
constexpr std::uint64_t usedRingSize(std::uint16_t size) { return availableEvent(size) + 2; }

/// The available ring's flag: no interrupt please.
constexpr std::uint16_t kNoInterrupt = 1;

// Section 6, reserved feature bits.
constexpr std::uint64_t kFeatureIndirect = std::uint64_t{1} << 28;
constexpr std::uint64_t kFeatureEventIndex = std::uint64_t{1} << 29;
constexpr std::uint64_t kFeatureVersion1 = std::uint64_t{1} << 32;

/// Section 2.7.7.2: whether an index that went from `before` to `now` has passed `event`.
constexpr bool passed(std::uint16_t event, std::uint16_t now, std::uint16_t before) {
  return static_cast<std::uint16_t>(now - event - 1) < static_cast<std::uint16_t>(now - before);
}

}  // namespace bough::vmm::ring
