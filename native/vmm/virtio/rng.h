// The entropy device (VIRTIO 1.2, section 5.4): gives the guest random bytes of the host's kernel. Nothing is kept, so
// that two machines that were one never get the same bytes.
#pragma once

#include "native/vmm/virtio/device.h"
#include "native/vmm/virtio/queue.h"

namespace bough::vmm {

class Rng : public VirtioDevice {
 public:
  /// Most bytes for one request; the specification lets a device give fewer than were asked for.
  static constexpr std::size_t kMostBytes = 4096;

  std::uint32_t id() const override { return 4; }
  std::span<const std::uint16_t> queueSizes() const override { return kSizes; }
  void readConfig(std::uint64_t /*offset*/, std::span<std::byte> /*data*/) const override {}
  void activate(std::span<Virtqueue> queues, std::uint64_t /*features*/) override { queues_ = queues; }
  void reset() override { queues_ = {}; }
  bool notified(std::size_t index) override;

  Result<Done> attach(HostEnds& /*ends*/, EventLoop& /*loop*/) override { return Done{}; }
  void drain() override { drained_ = true; }
  void resume() override;
  void becomeChild() override {}

  void save(Encoder& /*out*/) const override {}
  Result<Done> load(Decoder& /*in*/) override { return Done{}; }

 private:
  static constexpr std::uint16_t kSizes[] = {16};
  std::span<Virtqueue> queues_;
  bool drained_ = false;
};

}  // namespace bough::vmm
