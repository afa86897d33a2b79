// The registers of the virtio-mmio transport (VIRTIO 1.2, section 4.2.2, "MMIO Device Register Layout"), its device
// status bits (section 2.1) and interrupt bits (section 4.2.2, InterruptStatus). Used by mmio.cc and by the tests.
#pragma once

#include <cstdint>

namespace bough::vmm::mmio {

enum Register : std::uint64_t {
  kMagicValue = 0x000,         // R
  kVersion = 0x004,            // R
  kDeviceId = 0x008,           // R
  kVendorId = 0x00C,           // R
  kDeviceFeatures = 0x010,     // R, the word that kDeviceFeaturesSel names
  kDeviceFeaturesSel = 0x014,  // W
  kDriverFeatures = 0x020,     // W
  kDriverFeaturesSel = 0x024,  // W
  kQueueSel = 0x030,           // W
  kQueueNumMax = 0x034,        // R
  kQueueNum = 0x038,           // W
  kQueueReady = 0x044,         // RW
  kQueueNotify = 0x050,        // W
  kInterruptStatus = 0x060,    // R
  kInterruptAck = 0x064,       // W
  kStatus = 0x070,             // RW
  kQueueDescLow = 0x080,       // W
  kQueueDescHigh = 0x084,      // W
  kQueueDriverLow = 0x090,     // W
  kQueueDriverHigh = 0x094,    // W
  kQueueDeviceLow = 0x0A0,     // W
  kQueueDeviceHigh = 0x0A4,    // W
  kShmLenLow = 0x0B0,          // R
  kShmBaseHigh = 0x0BC,        // R
  kConfigGeneration = 0x0FC,   // R
  kConfig = 0x100,             // RW
};

constexpr std::uint32_t kMagic = 0x74726976;  // "virt"
constexpr std::uint32_t kTransportVersion = 2;
constexpr std::uint32_t kVendor = 0x48475542;  // "BUGH"

enum Status : std::uint32_t {
  kAcknowledge = 1,
  kDriver = 2,
  kDriverOk = 4,
  kFeaturesOk = 8,
  kNeedsReset = 64,
  kFailed = 128,
};

enum Interrupt : std::uint32_t { kUsedBuffer = 1, kConfigChange = 2 };

}  // namespace bough::vmm::mmio
