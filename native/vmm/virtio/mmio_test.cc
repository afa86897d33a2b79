// The transport, driven through its registers as Linux drives it: features, queue set-up, kicks, interrupts, reset,
// save.
#include "native/vmm/virtio/mmio.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "native/vmm/virtio/test_driver.h"

using namespace bough;
using namespace bough::vmm;

namespace {

/// Answers each request with its own bytes in reverse.
class Reverser : public VirtioDevice {
 public:
  std::uint32_t id() const override { return 77; }
  std::uint64_t features() const override { return 0b101; }
  std::span<const std::uint16_t> queueSizes() const override { return sizes_; }
  void readConfig(std::uint64_t offset, std::span<std::byte> data) const override {
    for (std::size_t i = 0; i < data.size() && offset + i < config.size(); i++)
      data[i] = static_cast<std::byte>(config[offset + i]);
  }
  void writeConfig(std::uint64_t offset, std::span<const std::byte> data) override {
    for (std::size_t i = 0; i < data.size() && offset + i < config.size(); i++)
      config[offset + i] = static_cast<char>(data[i]);
  }
  void activate(std::span<Virtqueue> queues, std::uint64_t agreed) override {
    queues_ = queues;
    activeFeatures = agreed;
    activations++;
  }
  void reset() override { resets++; }
  bool notified(std::size_t index) override {
    calls++;
    int done = 0;
    while (auto chain = queues_[index].take()) {
      std::string text(chain->readableSize(), '\0');
      chain->read(0, std::as_writable_bytes(std::span(text)));
      queues_[index].answer(*chain, chain->write(0, asBytes(std::string(text.rbegin(), text.rend()))));
      if (++done == perTurn) return true;
    }
    return false;
  }
  Result<Done> attach(HostEnds&, EventLoop&) override { return Done{}; }
  void becomeChild() override {}
  void save(Encoder& out) const override { out.bytes(config); }
  Result<Done> load(Decoder& in) override {
    config = in.bytes();
    return Done{};
  }

  std::string config = "configuration";
  std::uint64_t activeFeatures = 0;
  int activations = 0, resets = 0, calls = 0, perTurn = 1000;

 private:
  std::array<std::uint16_t, 2> sizes_{8, 4};
  std::span<Virtqueue> queues_;
};

struct World {
  Reverser device;
  TestDriver driver{device};
};

}  // namespace

TEST_CASE("what a driver reads first") {
  World world;
  CHECK(world.driver.get(mmio::kMagicValue) == 0x74726976);
  CHECK(world.driver.get(mmio::kVersion) == 2);
  CHECK(world.driver.get(mmio::kDeviceId) == 77);
  CHECK(world.driver.get(mmio::kStatus) == 0);
  CHECK(world.driver.get(mmio::kQueueNumMax) == 8);
  world.driver.set(mmio::kQueueSel, 1);
  CHECK(world.driver.get(mmio::kQueueNumMax) == 4);
  world.driver.set(mmio::kQueueSel, 2);
  CHECK(world.driver.get(mmio::kQueueNumMax) == 0);
  CHECK(world.driver.get(mmio::kShmLenLow) == 0xFFFFFFFF);
  world.driver.set(mmio::kDeviceFeaturesSel, 1);
  CHECK(world.driver.get(mmio::kDeviceFeatures) == 1);
  world.driver.set(mmio::kDeviceFeaturesSel, 0);
  CHECK(world.driver.get(mmio::kDeviceFeatures) == (0b101 | 1 << 28 | 1 << 29));
  world.driver.set(mmio::kDeviceFeaturesSel, 2);
  CHECK(world.driver.get(mmio::kDeviceFeatures) == 0);
}

TEST_CASE("configuration space is read and written in any width") {
  World world;
  std::array<std::byte, 1> one{};
  world.driver.mmio.read(mmio::kConfig + 4, one);
  CHECK(one[0] == std::byte{'i'});
  std::array<std::byte, 8> eight{};
  world.driver.mmio.read(mmio::kConfig + 9, eight);
  CHECK(std::memcmp(eight.data(), "tion\0\0\0\0", 8) == 0);
  world.driver.mmio.write(mmio::kConfig, asBytes("C"));
  CHECK(world.device.config[0] == 'C');
}

TEST_CASE("a request goes in, its answer comes out, one interrupt for all of a turn") {
  World world;
  world.driver.start();
  CHECK(world.device.activations == 1);
  CHECK(world.device.activeFeatures ==
        (0b101 | ring::kFeatureIndirect | ring::kFeatureEventIndex | ring::kFeatureVersion1));
  const int before = world.driver.line.pulses;
  const auto room = world.driver.room(5);
  world.driver.queues[1].add({world.driver.put("hello"), room});
  world.driver.queues[1].add({world.driver.put("again"), world.driver.room(3)});
  world.driver.kick(1);
  CHECK(world.driver.queues[1].next()->written == 5);
  CHECK(world.driver.queues[1].next()->written == 3);
  CHECK(world.driver.text(room.address, 5) == "olleh");
  CHECK(world.driver.line.pulses == before + 1);
  CHECK(world.driver.get(mmio::kInterruptStatus) == mmio::kUsedBuffer);
  world.driver.set(mmio::kInterruptAck, mmio::kUsedBuffer);
  CHECK(world.driver.get(mmio::kInterruptStatus) == 0);
  world.driver.mmio.configChanged();
  CHECK(world.driver.get(mmio::kInterruptStatus) == mmio::kConfigChange);
  CHECK(world.driver.get(mmio::kConfigGeneration) == 1);
}

TEST_CASE("a device that has done enough for a turn is called again") {
  World world;
  world.device.perTurn = 1;
  world.driver.start(ring::kFeatureEventIndex);
  for (int i = 0; i < 4; i++) world.driver.queues[0].add({world.driver.put("ab"), world.driver.room(2)});
  world.driver.set(mmio::kQueueNotify, 0);
  world.driver.notified = false;
  world.driver.mmio.serve();
  CHECK(world.driver.queues[0].next());
  CHECK_FALSE(world.driver.queues[0].next());
  CHECK(world.driver.notified);
  world.driver.serve();
  for (int i = 0; i < 3; i++) CHECK(world.driver.queues[0].next());
}

TEST_CASE("features that were not offered, or without VERSION_1, are not agreed on") {
  World world;
  auto agreed = [&](std::uint32_t low, std::uint32_t high) {
    world.driver.set(mmio::kStatus, 0);
    world.driver.set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver);
    world.driver.set(mmio::kDriverFeaturesSel, 0);
    world.driver.set(mmio::kDriverFeatures, low);
    world.driver.set(mmio::kDriverFeaturesSel, 1);
    world.driver.set(mmio::kDriverFeatures, high);
    world.driver.set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kFeaturesOk);
    return (world.driver.get(mmio::kStatus) & mmio::kFeaturesOk) != 0;
  };
  CHECK(agreed(0b100, 1));
  CHECK_FALSE(agreed(0b10, 1));
  CHECK_FALSE(agreed(0b100, 0));
  // Nor does a driver come to DRIVER_OK without them.
  world.driver.set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kDriverOk);
  CHECK((world.driver.get(mmio::kStatus) & mmio::kDriverOk) == 0);
  CHECK(world.device.activations == 0);
}

TEST_CASE("queues stay where they are while the driver runs") {
  World world;
  world.driver.start();
  world.driver.set(mmio::kQueueSel, 0);
  world.driver.set(mmio::kQueueReady, 0);
  CHECK(world.driver.get(mmio::kQueueReady) == 0);
  world.driver.makeReady(0);
  CHECK(world.driver.get(mmio::kQueueReady) == 0);
  world.driver.queues[0].add({world.driver.put("dead"), world.driver.room(4)});
  world.driver.kick(0);
  CHECK_FALSE(world.driver.queues[0].next());
}

TEST_CASE("a queue outside RAM does not become ready") {
  World world;
  world.driver.set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver);
  world.driver.set(mmio::kDriverFeaturesSel, 1);
  world.driver.set(mmio::kDriverFeatures, 1);
  world.driver.set(mmio::kStatus, mmio::kAcknowledge | mmio::kDriver | mmio::kFeaturesOk);
  world.driver.queues[0].used = GuestAddress{0xFFFF'FFFF'F000};
  world.driver.makeReady(0);
  CHECK(world.driver.get(mmio::kQueueReady) == 0);
}

TEST_CASE("a broken queue asks for a reset, after which all is well again") {
  World world;
  world.driver.start();
  const int before = world.driver.line.pulses;
  world.driver.queues[0].offer(200);
  world.driver.kick(0);
  CHECK((world.driver.get(mmio::kStatus) & mmio::kNeedsReset) != 0);
  CHECK((world.driver.get(mmio::kInterruptStatus) & mmio::kConfigChange) != 0);
  CHECK(world.driver.line.pulses == before + 1);
  world.driver.kick(0);
  CHECK(world.driver.line.pulses == before + 1);

  world.driver.restart();
  CHECK(world.device.resets == 1);
  CHECK((world.driver.get(mmio::kStatus) & mmio::kNeedsReset) == 0);
  world.driver.queues[0].add({world.driver.put("ab"), world.driver.room(2)});
  world.driver.kick(0);
  CHECK(world.driver.queues[0].next());
}

TEST_CASE("saved and loaded over the same memory, transport and queues go on") {
  World world;
  world.driver.start();
  world.driver.queues[0].add({world.driver.put("ab"), world.driver.room(2)});
  world.driver.kick(0);
  REQUIRE(world.driver.queues[0].next());
  world.device.config = "saved";
  Encoder out;
  world.driver.mmio.save(out);

  Reverser device;
  CountingLine line;
  bool notified = false;
  VirtioMmio loaded(device, world.driver.memory, line, [&] { notified = true; });
  Decoder in(out.str());
  REQUIRE(loaded.load(in));
  CHECK(in.atEnd());
  CHECK(device.activations == 1);
  CHECK(device.config == "saved");
  CHECK(notified);
  world.driver.queues[0].add({world.driver.put("xyz"), world.driver.room(3)});
  loaded.serve();
  CHECK(world.driver.queues[0].next()->written == 3);
  CHECK(line.pulses == 1);

  for (std::size_t cut = 0; cut + 1 < out.size() - 6; cut++) {
    Decoder shorter(std::string_view(out.str()).substr(0, cut));
    const auto result = VirtioMmio(device, world.driver.memory, line, [] {}).load(shorter);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == "E_SAVED_DAMAGED");
  }
}
