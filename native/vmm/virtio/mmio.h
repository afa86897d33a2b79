// The virtio-mmio transport (VIRTIO 1.2, section 4.2, version 2): one page of registers in front of a virtio device.
// Used by the machine, which places it on the memory bus.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "native/common/codec.h"
#include "native/vmm/devices/bus.h"
#include "native/vmm/memory/guest_memory.h"
#include "native/vmm/virtio/device.h"
#include "native/vmm/virtio/queue.h"

namespace bough::vmm {

class VirtioMmio : public Registers {
 public:
  static constexpr std::uint64_t kSize = 0x1000;

  /// `notify` is called on a vCPU's thread when the driver has put buffers into a queue: it makes the I/O thread call
  /// serve() soon (EventLoop::wake).
  VirtioMmio(VirtioDevice& device, const GuestMemory& memory, InterruptLine& line, std::function<void()> notify);

  void read(std::uint64_t offset, std::span<std::byte> data) override;
  void write(std::uint64_t offset, std::span<const std::byte> data) override;

  /// Calls device.notified() for every queue that the driver kicked since the last call, then signals; where a device
  /// has done enough for one turn and has more to do, it is notified again in the next. On the I/O thread, device lock
  /// held.
  void serve();
  /// Raises the used-buffer interrupt if any queue's driver wants one. Devices that answer outside of serve() (an
  /// answer came from the host side) have this called by the machine after each turn of its loop.
  void signal();
  /// The device changed its configuration space.
  void configChanged();

  std::uint32_t status() const { return status_; }
  VirtioDevice& device() { return device_; }

  /// Transport, queues and device. Only while the device is drained and quiet.
  void save(Encoder& out) const;
  /// Errors: E_SAVED_DAMAGED.
  Result<Done> load(Decoder& in);

 private:
  std::uint32_t readRegister(std::uint64_t offset) const;
  void writeRegister(std::uint64_t offset, std::uint32_t value);
  void writeStatus(std::uint32_t value);
  void writeQueue(std::uint64_t offset, std::uint32_t value);
  void notifyAll();
  void reset();
  std::uint64_t offeredFeatures() const;

  VirtioDevice& device_;
  InterruptLine& line_;
  std::function<void()> notify_;
  std::vector<Virtqueue> queues_;
  /// What the driver has written for each queue so far.
  std::vector<Virtqueue::Layout> pendingLayouts_;
  /// A bit for each queue.
  std::uint64_t kicked_ = 0;
  std::uint64_t driverFeatures_ = 0;
  std::uint32_t deviceFeaturesSelect_ = 0;
  std::uint32_t driverFeaturesSelect_ = 0;
  std::uint32_t queueSelect_ = 0;
  std::uint32_t status_ = 0;
  std::uint32_t interruptStatus_ = 0;
  std::uint32_t configGeneration_ = 0;
};

}  // namespace bough::vmm
