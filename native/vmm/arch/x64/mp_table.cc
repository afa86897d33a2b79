// See mp_table.h; section numbers are those of the specification.
#include "native/vmm/arch/x64/mp_table.h"

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "native/vmm/arch/x64/layout.h"

namespace bough::vmm {

namespace {

class Table {
 public:
  void u8(unsigned value) { bytes_.push_back(static_cast<std::uint8_t>(value)); }
  void u16(unsigned value) {
    u8(value & 0xFF);
    u8(value >> 8);
  }
  void u32(std::uint32_t value) {
    u16(value & 0xFFFF);
    u16(value >> 16);
  }
  void text(std::string_view value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }
  std::size_t size() const { return bytes_.size(); }
  void patch16(std::size_t at, unsigned value) {
    bytes_.at(at) = static_cast<std::uint8_t>(value & 0xFF);
    bytes_.at(at + 1) = static_cast<std::uint8_t>(value >> 8);
  }
  /// Makes the sum of [from, from + size) zero, modulo 256, by the byte at `at`.
  void checksum(std::size_t at, std::size_t from, std::size_t size) {
    bytes_.at(at) = 0;
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(from);
    const unsigned sum = std::accumulate(first, first + static_cast<std::ptrdiff_t>(size), 0U);
    bytes_.at(at) = static_cast<std::uint8_t>(-sum);
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Entry types, section 4.3.
constexpr unsigned kProcessor = 0;
constexpr unsigned kBus = 1;
constexpr unsigned kIoApic = 2;
constexpr unsigned kIoInterrupt = 3;
constexpr unsigned kLocalInterrupt = 4;
// Interrupt types, section 4.3.4.
constexpr unsigned kVectored = 0;
constexpr unsigned kNmi = 1;
constexpr unsigned kExternal = 3;

constexpr unsigned kApicVersion = 0x14;
constexpr std::size_t kPointerSize = 16;

}  // namespace

bool writeMpTable(const GuestMemory& memory, unsigned vcpus) {
  Table table;
  // 4.1: the floating pointer, with the address of the configuration table behind it.
  table.text("_MP_");
  table.u32(static_cast<std::uint32_t>(raw(layout::kMpTable) + kPointerSize));
  table.u8(1);
  table.u8(4);
  for (int i = 0; i < 6; i++) table.u8(0);
  table.checksum(10, 0, kPointerSize);

  // 4.2: the configuration table's header.
  table.text("PCMP");
  table.u16(0);
  table.u8(4);
  table.u8(0);
  table.text("BOUGH   ");
  table.text("BOUGHVM     ");
  table.u32(0);
  table.u16(0);
  table.u16(0);
  table.u32(layout::kLocalApic);
  table.u32(0);

  unsigned entries = 0;
  for (unsigned id = 0; id < vcpus; id++, entries++) {
    table.u8(kProcessor);
    table.u8(id);
    table.u8(kApicVersion);
    table.u8(id == 0 ? 3 : 1);
    table.u32(0x600);
    table.u32(0x201);
    table.u32(0);
    table.u32(0);
  }
  table.u8(kBus);
  table.u8(0);
  table.text("ISA   ");
  table.u8(kIoApic);
  table.u8(vcpus);
  table.u8(0x11);
  table.u8(1);
  table.u32(layout::kIoApic);
  entries += 2;

  const auto interrupt = [&](unsigned entry, unsigned type, unsigned source, unsigned destination, unsigned line) {
    table.u8(entry);
    table.u8(type);
    table.u16(0);
    table.u8(0);
    table.u8(source);
    table.u8(destination);
    table.u8(line);
    entries++;
  };
  // The timer's ISA line 0 arrives at input 2; what would be line 2 is the second PIC.
  for (unsigned line = 0; line < layout::kIoApicLines; line++) {
    if (line != 2) interrupt(kIoInterrupt, kVectored, line, vcpus, line == 0 ? 2 : line);
  }
  interrupt(kLocalInterrupt, kExternal, 0, 0xFF, 0);
  interrupt(kLocalInterrupt, kNmi, 0, 0xFF, 1);

  const std::size_t size = table.size() - kPointerSize;
  table.patch16(kPointerSize + 4, static_cast<unsigned>(size));
  table.patch16(kPointerSize + 34, entries);
  table.checksum(kPointerSize + 7, kPointerSize, size);
  if (table.size() > layout::kMpTableSize) return false;
  return memory.write(layout::kMpTable, std::as_bytes(std::span(table.bytes())));
}

}  // namespace bough::vmm
