// See mmio.h.
#include "native/vmm/virtio/mmio.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "native/vmm/virtio/mmio_registers.h"
#include "native/vmm/virtio/ring_layout.h"

namespace bough::vmm {

namespace {

void setLow(GuestAddress& address, std::uint32_t value) {
  address = GuestAddress{(raw(address) & ~std::uint64_t{0xFFFF'FFFF}) | value};
}

void setHigh(GuestAddress& address, std::uint32_t value) {
  address = GuestAddress{(raw(address) & 0xFFFF'FFFF) | (std::uint64_t{value} << 32)};
}

void saveLayout(Encoder& out, const Virtqueue::Layout& layout) {
  out.number(layout.size);
  out.number(raw(layout.descriptors));
  out.number(raw(layout.available));
  out.number(raw(layout.used));
}

Virtqueue::Layout loadLayout(Decoder& in) {
  Virtqueue::Layout layout;
  const std::uint64_t size = in.number();
  if (size > UINT16_MAX) in.fail();
  layout.size = static_cast<std::uint16_t>(size);
  layout.descriptors = GuestAddress{in.number()};
  layout.available = GuestAddress{in.number()};
  layout.used = GuestAddress{in.number()};
  return layout;
}

Error damaged() {
  return Error{EINVAL, "E_SAVED_DAMAGED",
               "the saved state of a virtio device cannot be right: save the machine again, or load another file"};
}

}  // namespace

VirtioMmio::VirtioMmio(VirtioDevice& device, const GuestMemory& memory, InterruptLine& line,
                       std::function<void()> notify)
    : device_(device), line_(line), notify_(std::move(notify)) {
  for (const std::uint16_t size : device.queueSizes()) queues_.emplace_back(memory, size);
  pendingLayouts_.resize(queues_.size());
}

std::uint64_t VirtioMmio::offeredFeatures() const {
  return device_.features() | ring::kFeatureVersion1 | ring::kFeatureIndirect | ring::kFeatureEventIndex;
}

void VirtioMmio::read(std::uint64_t offset, std::span<std::byte> data) {
  if (offset >= mmio::kConfig) {
    device_.readConfig(offset - mmio::kConfig, data);
    return;
  }
  // 4.2.2.2: only aligned accesses of 32 bits.
  if (data.size() != 4 || offset % 4 != 0) return;
  const std::uint32_t value = readRegister(offset);
  std::memcpy(data.data(), &value, sizeof value);
}

void VirtioMmio::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (offset >= mmio::kConfig) {
    device_.writeConfig(offset - mmio::kConfig, data);
    return;
  }
  if (data.size() != 4 || offset % 4 != 0) return;
  std::uint32_t value = 0;
  std::memcpy(&value, data.data(), sizeof value);
  writeRegister(offset, value);
}

std::uint32_t VirtioMmio::readRegister(std::uint64_t offset) const {
  // No shared memory region: a length of all ones (4.2.2, SHMLenLow).
  if (offset >= mmio::kShmLenLow && offset <= mmio::kShmBaseHigh) return UINT32_MAX;
  switch (offset) {
    case mmio::kMagicValue:
      return mmio::kMagic;
    case mmio::kVersion:
      return mmio::kTransportVersion;
    case mmio::kDeviceId:
      return device_.id();
    case mmio::kVendorId:
      return mmio::kVendor;
    case mmio::kDeviceFeatures:
      return deviceFeaturesSelect_ < 2 ? static_cast<std::uint32_t>(offeredFeatures() >> (32 * deviceFeaturesSelect_))
                                       : 0;
    case mmio::kQueueNumMax:
      return queueSelect_ < queues_.size() ? queues_[queueSelect_].largestSize() : 0;
    case mmio::kQueueReady:
      return queueSelect_ < queues_.size() && queues_[queueSelect_].layout().ready ? 1 : 0;
    case mmio::kInterruptStatus:
      return interruptStatus_;
    case mmio::kStatus:
      return status_;
    case mmio::kConfigGeneration:
      return configGeneration_;
    default:
      return 0;
  }
}

void VirtioMmio::writeRegister(std::uint64_t offset, std::uint32_t value) {
  switch (offset) {
    case mmio::kDeviceFeaturesSel:
      deviceFeaturesSelect_ = value;
      return;
    case mmio::kDriverFeaturesSel:
      driverFeaturesSelect_ = value;
      return;
    case mmio::kDriverFeatures:
      // 3.1.1: settled once FEATURES_OK is set.
      if (driverFeaturesSelect_ > 1 || (status_ & mmio::kFeaturesOk)) return;
      driverFeatures_ &= ~(std::uint64_t{0xFFFF'FFFF} << (32 * driverFeaturesSelect_));
      driverFeatures_ |= std::uint64_t{value} << (32 * driverFeaturesSelect_);
      return;
    case mmio::kQueueSel:
      queueSelect_ = value;
      return;
    case mmio::kQueueNotify:
      if (value >= queues_.size() || !(status_ & mmio::kDriverOk)) return;
      kicked_ |= std::uint64_t{1} << value;
      notify_();
      return;
    case mmio::kInterruptAck:
      interruptStatus_ &= ~value;
      return;
    case mmio::kStatus:
      writeStatus(value);
      return;
    default:
      writeQueue(offset, value);
      return;
  }
}

void VirtioMmio::writeQueue(std::uint64_t offset, std::uint32_t value) {
  if (queueSelect_ >= queues_.size()) return;
  Virtqueue& queue = queues_[queueSelect_];
  Virtqueue::Layout& layout = pendingLayouts_[queueSelect_];
  if (offset == mmio::kQueueReady && value == 0) {
    queue.reset();
    return;
  }
  // 3.1.1: queues are set up after the features are settled and before DRIVER_OK. The device then never sees one move.
  if (!(status_ & mmio::kFeaturesOk) || (status_ & mmio::kDriverOk) || queue.layout().ready) return;
  switch (offset) {
    case mmio::kQueueNum:
      layout.size = static_cast<std::uint16_t>(std::min<std::uint32_t>(value, UINT16_MAX));
      return;
    case mmio::kQueueDescLow:
      return setLow(layout.descriptors, value);
    case mmio::kQueueDescHigh:
      return setHigh(layout.descriptors, value);
    case mmio::kQueueDriverLow:
      return setLow(layout.available, value);
    case mmio::kQueueDriverHigh:
      return setHigh(layout.available, value);
    case mmio::kQueueDeviceLow:
      return setLow(layout.used, value);
    case mmio::kQueueDeviceHigh:
      return setHigh(layout.used, value);
    case mmio::kQueueReady:
      layout.eventIndex = driverFeatures_ & ring::kFeatureEventIndex;
      // A driver reads QueueReady back (4.2.3.2): 0 tells it that the queue cannot be so.
      if (value == 1) queue.enable(layout);
      return;
    default:
      return;
  }
}

void VirtioMmio::writeStatus(std::uint32_t value) {
  if (value == 0) return reset();
  // 2.1.1: a driver does not clear bits except by a reset.
  std::uint32_t added = value & ~status_ & ~std::uint32_t{mmio::kNeedsReset};
  if (added & mmio::kFeaturesOk) {
    const bool acceptable =
        (driverFeatures_ & ~offeredFeatures()) == 0 && (driverFeatures_ & ring::kFeatureVersion1) != 0;
    if (!acceptable) added &= ~std::uint32_t{mmio::kFeaturesOk};
  }
  if ((added & mmio::kDriverOk) && !((status_ | added) & mmio::kFeaturesOk)) added &= ~std::uint32_t{mmio::kDriverOk};
  status_ |= added;
  if (added & mmio::kDriverOk) {
    device_.activate(queues_, driverFeatures_);
    // Buffers that were there before the driver was ready need no kick of their own.
    notifyAll();
  }
}

void VirtioMmio::notifyAll() {
  kicked_ = (std::uint64_t{1} << queues_.size()) - 1;
  notify_();
}

void VirtioMmio::reset() {
  const bool active = status_ & mmio::kDriverOk;
  for (Virtqueue& queue : queues_) queue.reset();
  std::fill(pendingLayouts_.begin(), pendingLayouts_.end(), Virtqueue::Layout{});
  kicked_ = 0;
  driverFeatures_ = 0;
  deviceFeaturesSelect_ = driverFeaturesSelect_ = queueSelect_ = 0;
  status_ = 0;
  interruptStatus_ = 0;
  if (active) device_.reset();
}

void VirtioMmio::serve() {
  const std::uint64_t kicked = std::exchange(kicked_, 0);
  for (std::size_t i = 0; i < queues_.size(); i++) {
    if (!(kicked & (std::uint64_t{1} << i))) continue;
    if (device_.notified(i)) kicked_ |= std::uint64_t{1} << i;
  }
  if (kicked_ != 0) notify_();
  signal();
}

void VirtioMmio::signal() {
  if (!(status_ & mmio::kDriverOk)) return;
  bool wanted = false;
  bool broken = false;
  for (Virtqueue& queue : queues_) {
    wanted |= queue.interruptWanted();
    broken |= queue.broken();
  }
  if (broken && !(status_ & mmio::kNeedsReset)) {
    status_ |= mmio::kNeedsReset;
    interruptStatus_ |= mmio::kConfigChange;
    wanted = true;
  }
  if (!wanted) return;
  interruptStatus_ |= mmio::kUsedBuffer;
  // Also where the driver has not yet acknowledged the one before: an edge that it lost while the line was masked must
  // not be the last.
  line_.pulse();
}

void VirtioMmio::configChanged() {
  configGeneration_++;
  if (!(status_ & mmio::kDriverOk)) return;
  interruptStatus_ |= mmio::kConfigChange;
  line_.pulse();
}

void VirtioMmio::save(Encoder& out) const {
  out.number(device_.id());
  out.number(driverFeatures_);
  out.number(deviceFeaturesSelect_);
  out.number(driverFeaturesSelect_);
  out.number(queueSelect_);
  out.number(status_);
  out.number(interruptStatus_);
  out.number(configGeneration_);
  out.number(queues_.size());
  for (const Virtqueue::Layout& layout : pendingLayouts_) saveLayout(out, layout);
  for (const Virtqueue& queue : queues_) queue.save(out);
  device_.save(out);
}

Result<Done> VirtioMmio::load(Decoder& in) {
  reset();
  if (in.number() != device_.id()) return damaged();
  driverFeatures_ = in.number();
  deviceFeaturesSelect_ = in.number32();
  driverFeaturesSelect_ = in.number32();
  queueSelect_ = in.number32();
  const std::uint32_t status = in.number32();
  interruptStatus_ = in.number32();
  configGeneration_ = in.number32();
  bool right = in.ok() && in.number() == queues_.size();
  if (status & mmio::kFeaturesOk) right = right && (driverFeatures_ & ~offeredFeatures()) == 0;
  if (status & mmio::kDriverOk) right = right && (status & mmio::kFeaturesOk);
  for (Virtqueue::Layout& layout : pendingLayouts_) layout = loadLayout(in);
  for (Virtqueue& queue : queues_) right = right && queue.load(in);
  if (!right || !in.ok()) {
    reset();
    return damaged();
  }
  status_ = status;
  const Result<Done> loaded = device_.load(in);
  if (!loaded) {
    status_ = 0;
    reset();
    return loaded.error();
  }
  if (status_ & mmio::kDriverOk) {
    device_.activate(queues_, driverFeatures_);
    notifyAll();
  }
  return Done{};
}

}  // namespace bough::vmm
