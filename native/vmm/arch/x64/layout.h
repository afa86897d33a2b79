// Where things are in a guest's physical address space. Used by the boot loader and the machine; docs/devices.md has
// the whole map.
#pragma once

#include <cstdint>

#include "native/vmm/memory/guest_memory.h"

namespace bough::vmm::layout {

// Boot data, below the kernel.
constexpr GuestAddress kStartInfo{0x6000};
constexpr GuestAddress kModuleList{0x6040};
constexpr GuestAddress kMemoryMap{0x7000};
constexpr GuestAddress kCommandLine{0x20000};
constexpr std::size_t kCommandLineSize = 2048;
/// Conventional memory ends where an old BIOS kept its data; the MP table is looked for there.
constexpr GuestAddress kMpTable{0x9FC00};
constexpr std::size_t kMpTableSize = 0x400;
constexpr GuestAddress kKernelMin{0x100000};

// Devices, between RAM and 4 GiB.
constexpr std::uint64_t kVirtioStart = 0xD000'0000;
constexpr std::uint64_t kVirtioStride = 0x1000;
constexpr std::uint32_t kLocalApic = 0xFEE0'0000;
constexpr std::uint32_t kIoApic = 0xFEC0'0000;

// Interrupt lines of the I/O APIC.
constexpr std::uint32_t kIoApicLines = 24;
constexpr std::uint32_t kSerialLine = 4;
constexpr std::uint32_t kFirstVirtioLine = 5;

// I/O ports.
constexpr std::uint16_t kSerialPort = 0x3F8;
constexpr std::uint16_t kSerialPorts = 8;
/// The keyboard controller, of which only the reset command is there.
constexpr std::uint16_t kResetPort = 0x64;

}  // namespace bough::vmm::layout
