// See cpuid.h. Leaves and bits: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E; KVM's own: the kernel's
// Documentation/virt/kvm/x86/cpuid.rst.
#include "native/vmm/arch/x64/cpuid.h"

#include <bit>
#include <initializer_list>

namespace bough::vmm {

namespace {

constexpr std::uint32_t bits(std::initializer_list<unsigned> list) {
  std::uint32_t mask = 0;
  for (const unsigned bit : list) mask |= std::uint32_t{1} << bit;
  return mask;
}

// Leaf 1.
constexpr std::uint32_t kVmx = bits({5});
constexpr std::uint32_t kHypervisor = bits({31});
constexpr std::uint32_t kHyperThreading = bits({28});
// SSSE3 and later vector instructions, cmpxchg16b, popcnt, movbe, aes, xsave, avx, f16c, fma, pclmul, pcid, x2apic:
// what an emulator of kernel code does not know, or what a kernel would use because of it.
constexpr std::uint32_t kEmulatorLacks = bits({1, 9, 12, 13, 17, 19, 20, 21, 22, 23, 25, 26, 27, 28, 29});
// Leaf 0x80000001.
constexpr std::uint32_t kSvm = bits({2});
constexpr std::uint32_t kRdtscp = bits({27});
// Leaf 0x40000001: asynchronous page faults, which would interrupt a guest for pages that a fork has just shared.
constexpr std::uint32_t kAsyncPageFaults = bits({4, 10, 14});

bool isTopology(std::uint32_t leaf) { return leaf == 0xB || leaf == 0x1F; }

kvm_cpuid_entry2 topologyLevel(std::uint32_t index, std::uint32_t shift, std::uint32_t processors, std::uint32_t type,
                               unsigned apicId) {
  kvm_cpuid_entry2 entry{};
  entry.function = 0xB;
  entry.index = index;
  entry.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
  entry.eax = shift;
  entry.ebx = processors;
  entry.ecx = index | (type << 8);
  entry.edx = apicId;
  return entry;
}

void reduce(kvm_cpuid_entry2& entry) {
  switch (entry.function) {
    case 1:
      entry.ecx &= ~kEmulatorLacks;
      break;
    case 7:
    case 0xD:
      entry.eax = entry.ebx = entry.ecx = entry.edx = 0;
      break;
    case 0x80000001:
      entry.edx &= ~kRdtscp;
      break;
    default:
      break;
  }
}

/// One socket, one core per vCPU, one thread per core.
void place(kvm_cpuid_entry2& entry, unsigned apicId, unsigned vcpus) {
  const std::uint32_t shift = static_cast<std::uint32_t>(std::bit_width(vcpus - 1));
  switch (entry.function) {
    case 1:
      entry.ebx = (entry.ebx & 0xFFFF) | (vcpus << 16) | (apicId << 24);
      entry.ecx = (entry.ecx & ~kVmx) | kHypervisor;
      entry.edx = vcpus > 1 ? entry.edx | kHyperThreading : entry.edx & ~kHyperThreading;
      break;
    case 4:
      // No cache is shared between vCPUs; the package has as many cores as vCPUs.
      entry.eax = (entry.eax & 0x3FFF) | ((vcpus - 1) << 26);
      break;
    case 0x80000001:
      entry.ecx &= ~kSvm;
      break;
    case 0x80000008:
      entry.ecx = (entry.ecx & ~0xF0FFU) | (vcpus - 1) | (shift << 12);
      break;
    case 0x8000001D:
      entry.eax &= ~(0xFFFU << 14);
      break;
    case 0x8000001E:
      entry.eax = apicId;
      entry.ebx = apicId;
      entry.ecx = 0;
      break;
    case 0x40000001:
      entry.eax &= ~kAsyncPageFaults;
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<kvm_cpuid_entry2> guestCpuid(std::span<const kvm_cpuid_entry2> supported, CpuProfile profile,
                                         unsigned index, unsigned vcpus) {
  std::vector<kvm_cpuid_entry2> list;
  std::uint32_t highest = 0;
  for (const kvm_cpuid_entry2& each : supported) {
    // 0x8000000A describes AMD-V, which a guest does not have here.
    if (isTopology(each.function) || each.function == 0x8000000A) continue;
    kvm_cpuid_entry2 entry = each;
    if (profile == CpuProfile::kReduced) reduce(entry);
    place(entry, index, vcpus);
    if (entry.function == 0) highest = entry.eax;
    list.push_back(entry);
  }
  if (profile == CpuProfile::kFull && highest >= 0xB) {
    const auto shift = static_cast<std::uint32_t>(std::bit_width(vcpus - 1));
    list.push_back(topologyLevel(0, 0, 1, 1, index));
    list.push_back(topologyLevel(1, shift, vcpus, 2, index));
    list.push_back(topologyLevel(2, 0, 0, 0, index));
  }
  return list;
}

}  // namespace bough::vmm
