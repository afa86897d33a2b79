// What a vCPU's port and memory-mapped I/O reaches: the device behind an address. Used by vCPU threads; filled by the
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bough::vmm {

/// A device's registers. Called on a vCPU's thread with the machine's device lock held, so it must not wait for
/// anything.
class Registers {
 public:
  Registers() = default;
  Registers(const Registers&) = delete;
  Registers& operator=(const Registers&) = delete;
  virtual ~Registers() = default;
  /// `offset` from the device's first address; 1, 2, 4 or 8 bytes, all inside the device's range. `data` is zeroed
  /// before read(); what a device leaves alone reads as zero.
  virtual void read(std::uint64_t offset, std::span<std::byte> data) = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> data) = 0;
};

/// An address space (ports, or guest-physical addresses outside RAM) with devices in it.
class Bus {
 public:
  /// The ranges of one bus do not overlap.
  void add(std::uint64_t start, std::uint64_t size, Registers& device) { ranges_.push_back({start, size, &device}); }

  /// What no device answers reads as ones, as an empty bus does.
  void read(std::uint64_t address, std::span<std::byte> data) const {
    if (const Range* range = find(address, data.size())) {
      for (std::byte& each : data) each = std::byte{0};
      range->device->read(address - range->start, data);
    } else {
      for (std::byte& each : data) each = std::byte{0xFF};
    }
  }
  void write(std::uint64_t address, std::span<const std::byte> data) const {
    if (const Range* range = find(address, data.size())) range->device->write(address - range->start, data);
  }

 private:
  struct Range {
    std::uint64_t start;
    std::uint64_t size;
    Registers* device;
  };
  const Range* find(std::uint64_t address, std::size_t size) const {
    for (const Range& range : ranges_) {
      const std::uint64_t offset = address - range.start;
      if (address >= range.start && offset < range.size && size <= range.size - offset) return &range;
    }
    return nullptr;
  }
  std::vector<Range> ranges_;
};

/// A wire to the interrupt controller. Callable from any thread while the machine is built.
class InterruptLine {
 public:
  InterruptLine() = default;
  InterruptLine(const InterruptLine&) = delete;
  InterruptLine& operator=(const InterruptLine&) = delete;
  virtual ~InterruptLine() = default;
  /// One edge, low to high to low.
  virtual void pulse() = 0;
};

}  // namespace bough::vmm
