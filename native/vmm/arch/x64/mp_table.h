// The MP table (Intel MultiProcessor Specification 1.4): tells a guest without ACPI of its CPUs and interrupt lines.
// Used by the boot loader.
#pragma once

#include "native/vmm/memory/guest_memory.h"

namespace bough::vmm {

/// The most vCPUs for which the table fits in its place.
constexpr unsigned kMostVcpus = 32;

/// Writes the table for `vcpus` CPUs. False if RAM does not reach that far.
bool writeMpTable(const GuestMemory& memory, unsigned vcpus);

}  // namespace bough::vmm
