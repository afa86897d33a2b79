// The device's side of a virtqueue, with the test as the driver: chains come as they were put, answers go back,
// interrupts follow the driver's wish, and what a hostile driver writes breaks the queue and nothing else.
#include "native/vmm/virtio/queue.h"

#include <doctest/doctest.h>

#include <string>

#include "native/vmm/virtio/test_driver.h"

using namespace bough;
using namespace bough::vmm;

namespace {

struct World {
  explicit World(std::uint16_t size = 8, bool eventIndex = false) : driver(memory, size, 0x1000), queue(memory, 256) {
    REQUIRE(queue.enable(driver.layout(eventIndex)));
  }
  TestQueue::Part put(std::uint64_t address, std::string_view text) {
    memory.write(GuestAddress{address}, asBytes(text));
    return {GuestAddress{address}, static_cast<std::uint32_t>(text.size()), false};
  }
  GuestMemory memory = std::move(*GuestMemory::anonymous(GuestMemory::kAlignment, false));
  TestQueue driver;
  Virtqueue queue;
};

TestQueue::Part room(std::uint64_t address, std::uint32_t size) { return {GuestAddress{address}, size, true}; }

std::string readAll(const DescriptorChain& chain) {
  std::string text(chain.readableSize(), '\0');
  CHECK(chain.read(0, std::as_writable_bytes(std::span(text))) == text.size());
  return text;
}

}  // namespace

TEST_CASE("a chain of several buffers comes whole and is answered") {
  World world;
  const std::uint16_t head = world.driver.add(
      {world.put(0x10000, "hello "), world.put(0x20000, "world"), room(0x30000, 3), room(0x40000, 100)});
  auto chain = world.queue.take();
  REQUIRE(chain);
  CHECK(chain->head() == head);
  CHECK(chain->readableSize() == 11);
  CHECK(chain->writableSize() == 103);
  CHECK(readAll(*chain) == "hello world");
  CHECK(chain->write(1, asBytes("abcdef")) == 6);
  CHECK(world.memory.load<char>(GuestAddress{0x30001}) == 'a');
  CHECK(world.memory.load<char>(GuestAddress{0x40000}) == 'c');
  CHECK(chain->write(102, asBytes("xyz")) == 1);
  const auto parts = chain->writable(2, 50);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].iov_len == 1);
  CHECK(parts[1].iov_len == 49);
  CHECK(chain->readable(6, 100).size() == 1);

  CHECK_FALSE(world.driver.next());
  world.queue.answer(*chain, 7);
  const auto used = world.driver.next();
  REQUIRE(used);
  CHECK(used->head == head);
  CHECK(used->written == 7);
  CHECK_FALSE(world.queue.take());
  CHECK_FALSE(world.queue.broken());
}

TEST_CASE("an indirect table gives the same chain from one descriptor") {
  World world(4);
  std::vector<TestQueue::Part> parts;
  std::string expected;
  for (std::uint64_t i = 0; i < 40; i++) {
    const std::string text = std::to_string(i) + ",";
    parts.push_back(world.put(0x10000 + 64 * i, text));
    expected += text;
  }
  parts.push_back(room(0x30000, 16));
  world.driver.add(parts, GuestAddress{0x8000});
  const auto chain = world.queue.take();
  REQUIRE(chain);
  CHECK(readAll(*chain) == expected);
  CHECK(chain->writableSize() == 16);
}

TEST_CASE("indices wrap round: 200,000 requests through a queue of eight") {
  World world;
  for (int i = 0; i < 200'000; i++) {
    world.driver.add({world.put(0x10000, "x"), room(0x20000, 1)});
    auto chain = world.queue.take();
    REQUIRE(chain);
    world.queue.answer(*chain, 1);
    REQUIRE(world.driver.next());
  }
}

TEST_CASE("a chain that is put back comes again") {
  World world;
  const std::uint16_t first = world.driver.add({world.put(0x10000, "1")});
  const std::uint16_t second = world.driver.add({world.put(0x20000, "2")});
  CHECK(world.queue.take()->head() == first);
  CHECK(world.queue.take()->head() == second);
  world.queue.untake();
  CHECK(world.queue.take()->head() == second);
}

TEST_CASE("interrupts without an event index follow the driver's flag") {
  World world;
  CHECK_FALSE(world.queue.interruptWanted());
  world.driver.add({room(0x10000, 1)});
  world.queue.answer(*world.queue.take(), 0);
  CHECK(world.queue.interruptWanted());
  CHECK_FALSE(world.queue.interruptWanted());
  world.driver.setFlags(ring::kNoInterrupt);
  world.driver.add({room(0x10000, 1)});
  world.queue.answer(*world.queue.take(), 0);
  CHECK_FALSE(world.queue.interruptWanted());
}

TEST_CASE("with an event index one interrupt and one kick stand for many requests") {
  World world(8, true);
  world.driver.setUsedEvent(2);  // wants to hear when the third is done
  for (int i = 0; i < 4; i++) {
    world.driver.add({room(0x10000, 1)});
    world.queue.answer(*world.queue.take(), 0);
    CHECK(world.queue.interruptWanted() == (i == 2));
  }
  CHECK(world.driver.availableEvent() == 0);
  CHECK_FALSE(world.queue.take());
  CHECK(world.driver.availableEvent() == 4);  // came to the end: kick for the next one
  world.driver.add({room(0x10000, 1)});
  world.driver.add({room(0x10000, 1)});
  world.queue.askForKick();
  CHECK(world.driver.availableEvent() == 6);
}

TEST_CASE("what cannot be a queue is refused and changes nothing") {
  World world;
  const Virtqueue::Layout good = world.driver.layout();
  auto refused = [&](auto change) {
    Virtqueue::Layout layout = good;
    change(layout);
    const bool enabled = world.queue.enable(layout);
    return !enabled && world.queue.ready() && world.queue.layout().descriptors == good.descriptors;
  };
  CHECK(refused([](auto& l) { l.size = 0; }));
  CHECK(refused([](auto& l) { l.size = 3; }));
  CHECK(refused([](auto& l) { l.size = 512; }));
  CHECK(refused([](auto& l) { l.descriptors = GuestAddress{0x1008}; }));
  CHECK(refused([](auto& l) { l.available = GuestAddress{0x1001}; }));
  CHECK(refused([](auto& l) { l.used = GuestAddress{0x1002}; }));
  CHECK(refused([](auto& l) { l.descriptors = GuestAddress{GuestMemory::kAlignment - 16}; }));
  CHECK(refused([](auto& l) { l.available = GuestAddress{~std::uint64_t{1}}; }));
  CHECK(refused([](auto& l) { l.used = GuestAddress{GuestMemory::kAlignment - 64}; }));
}

TEST_CASE("hostile descriptors break the queue") {
  World world;
  TestQueue& driver = world.driver;
  const std::uint64_t end = GuestMemory::kAlignment;
  SUBCASE("outside RAM") { driver.add({room(end - 1, 2)}); }
  SUBCASE("an address that wraps round") { driver.add({room(~std::uint64_t{0} - 1, 4)}); }
  SUBCASE("a head that is not in the table") { driver.offer(8); }
  SUBCASE("more requests than the queue holds") { driver.setIndex(9); }
  SUBCASE("an index that went backwards") { driver.setIndex(0xFFFF); }
  SUBCASE("a circle") {
    driver.setDescriptor(0, {0x10000, 1, ring::kNext, 1});
    driver.setDescriptor(1, {0x10000, 1, ring::kNext, 0});
    driver.offer(0);
  }
  SUBCASE("a next that is not in the table") {
    driver.setDescriptor(0, {0x10000, 1, ring::kNext, 8});
    driver.offer(0);
  }
  SUBCASE("readable after writable") {
    driver.setDescriptor(0, {0x10000, 1, ring::kNext | ring::kWrite, 1});
    driver.setDescriptor(1, {0x10000, 1, 0, 0});
    driver.offer(0);
  }
  SUBCASE("too large together") {
    for (std::uint16_t i = 0; i < 8; i++)
      driver.setDescriptor(
          i, {0, 0x200000, static_cast<std::uint16_t>(i < 7 ? ring::kNext : 0), static_cast<std::uint16_t>(i + 1)});
    driver.offer(0);
    CHECK(world.queue.take());  // 16 MiB is the most
    driver.setDescriptor(7, {0, 0x200000, ring::kNext, 0});
    driver.offer(7);
  }
  SUBCASE("an indirect table outside RAM") {
    driver.setDescriptor(0, {end - 16, 32, ring::kIndirect, 0});
    driver.offer(0);
  }
  SUBCASE("half a descriptor in an indirect table") {
    driver.setDescriptor(0, {0x8000, 24, ring::kIndirect, 0});
    driver.offer(0);
  }
  SUBCASE("an empty indirect table") {
    driver.setDescriptor(0, {0x8000, 0, ring::kIndirect, 0});
    driver.offer(0);
  }
  SUBCASE("an indirect table within an indirect table") {
    driver.setDescriptor(0, {0x8000, 16, ring::kIndirect, 0});
    world.memory.store(GuestAddress{0x8000}, ring::Descriptor{0x8000, 16, ring::kIndirect, 0});
    driver.offer(0);
  }
  SUBCASE("a circle in an indirect table") {
    driver.setDescriptor(0, {0x8000, 16, ring::kIndirect, 0});
    world.memory.store(GuestAddress{0x8000}, ring::Descriptor{0x10000, 1, ring::kNext, 0});
    driver.offer(0);
  }
  SUBCASE("an indirect table that is too long") {
    driver.setDescriptor(0, {0x8000, 16 * 1025, ring::kIndirect, 0});
    driver.offer(0);
  }
  CHECK_FALSE(world.queue.take());
  CHECK(world.queue.broken());
  CHECK_FALSE(world.queue.ready());
  world.queue.answer(0, 1);
  CHECK_FALSE(driver.next());
}

TEST_CASE("saved and loaded, a queue goes on where it was") {
  World world;
  world.driver.add({room(0x10000, 4)});
  world.driver.add({room(0x10000, 4)});
  world.queue.answer(*world.queue.take(), 4);
  REQUIRE(world.driver.next());
  Encoder out;
  world.queue.save(out);

  Virtqueue copy(world.memory, 256);
  Decoder in(out.str());
  REQUIRE(copy.load(in));
  CHECK(in.atEnd());
  copy.answer(*copy.take(), 3);
  CHECK(world.driver.next()->written == 3);
  CHECK_FALSE(copy.take());

  for (std::size_t cut = 0; cut < out.size(); cut++) {
    Decoder shorter(std::string_view(out.str()).substr(0, cut));
    CHECK_FALSE(Virtqueue(world.memory, 256).load(shorter));
  }
  Decoder again(out.str());
  CHECK_FALSE(Virtqueue(world.memory, 4).load(again));  // larger than that queue may be
}
