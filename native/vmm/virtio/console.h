// The console device (VIRTIO 1.2, section 5.3), port 0 alone: the guest's hvc0. What the guest writes goes to the
// machine's console descriptor; what is typed comes through input().
#pragma once

#include <string>

#include "native/vmm/devices/sink.h"
#include "native/vmm/virtio/device.h"
#include "native/vmm/virtio/queue.h"

namespace bough::vmm {

class Console : public VirtioDevice {
 public:
  /// Input that the guest has given no buffer for yet; more is not taken.
  static constexpr std::size_t kMostInput = std::size_t{64} << 10;

  std::uint32_t id() const override { return 3; }
  std::span<const std::uint16_t> queueSizes() const override { return kSizes; }
  /// Columns and rows of 0: the guest asks its terminal.
  void readConfig(std::uint64_t /*offset*/, std::span<std::byte> /*data*/) const override {}
  void activate(std::span<Virtqueue> queues, std::uint64_t /*features*/) override { queues_ = queues; }
  void reset() override { queues_ = {}; }
  bool notified(std::size_t index) override;

  /// What somebody types; answers how many bytes were taken.
  std::size_t input(std::span<const std::byte> bytes);

  Result<Done> attach(HostEnds& ends, EventLoop& loop) override;
  void drain() override { drained_ = true; }
  void resume() override;
  /// What was typed and not yet read was typed for the parent.
  void becomeChild() override;

  void save(Encoder& /*out*/) const override {}
  Result<Done> load(Decoder& /*in*/) override { return Done{}; }

 private:
  static constexpr std::uint16_t kSizes[] = {64, 64};
  enum Queue : std::size_t { kReceive = 0, kTransmit = 1 };
  bool deliver();
  bool transmit();

  std::span<Virtqueue> queues_;
  Sink sink_;
  std::string input_;
  bool drained_ = false;
};

}  // namespace bough::vmm
