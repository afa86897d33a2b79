// The serial port as Linux's 8250 driver uses it: it finds the port, writes, is told by interrupts, reads what is
// typed.
#include "native/vmm/devices/serial.h"

#include <doctest/doctest.h>

#include <string>

#include "native/vmm/devices/serial_registers.h"
#include "native/vmm/virtio/test_host.h"

using namespace bough;
using namespace bough::vmm;

namespace {

struct World {
  World() {
    HostEnds ends;
    ends.console = std::move(sockets.theirs);
    REQUIRE(serial.attach(ends, *loop));
    CHECK(ends.console);  // the virtio console's
  }
  std::uint8_t in(std::uint64_t offset) {
    std::byte value{};
    serial.read(offset, {&value, 1});
    return static_cast<std::uint8_t>(value);
  }
  void out(std::uint64_t offset, unsigned value) {
    const auto byte = static_cast<std::byte>(value);
    serial.write(offset, {&byte, 1});
  }
  std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
  SocketPair sockets;
  CountingLine line;
  Serial serial{line};
};

}  // namespace

TEST_CASE("the early console writes and waits for an empty transmitter") {
  World world;
  for (const char each : std::string("Linux version 6\r\n")) {
    CHECK((world.in(uart::kLineStatus)&uart::kHoldingEmpty) != 0);
    world.out(uart::kData, static_cast<unsigned>(each));
  }
  CHECK(readNow(world.sockets.mine.get()) == "Linux version 6\r\n");
  CHECK(world.line.pulses == 0);
}

TEST_CASE("Linux's autoconfig finds a 16550A") {
  World world;
  world.out(uart::kInterruptEnable, 0);
  CHECK(world.in(uart::kInterruptEnable) == 0);
  world.out(uart::kInterruptEnable, 0x0F);
  CHECK((world.in(uart::kInterruptEnable) & 0x0F) == 0x0F);
  world.out(uart::kInterruptEnable, 0);
  world.out(uart::kModemControl, uart::kLoopback | uart::kOut2 | uart::kRts);
  CHECK((world.in(uart::kModemStatus) & 0xF0) == (uart::kCarrier | uart::kCts));
  world.out(uart::kModemControl, 0);
  world.out(uart::kInterruptId, uart::kEnableFifos);
  CHECK((world.in(uart::kInterruptId)&uart::kFifosOn) == uart::kFifosOn);
  world.out(uart::kScratch, 0xA5);
  CHECK(world.in(uart::kScratch) == 0xA5);
  world.out(uart::kLineControl, uart::kDivisorLatch | 3);
  world.out(uart::kData, 1);
  world.out(uart::kInterruptEnable, 2);
  CHECK(world.in(uart::kData) == 1);
  CHECK(world.in(uart::kInterruptEnable) == 2);
  world.out(uart::kLineControl, 3);
  CHECK(world.in(uart::kInterruptEnable) == 0);
  CHECK(world.in(uart::kModemStatus) == (uart::kCarrier | uart::kDsr | uart::kCts));
  CHECK(readNow(world.sockets.mine.get()).empty());
}

TEST_CASE("an interrupt says that the transmitter is empty, again each time it is asked for") {
  World world;
  for (int round = 1; round <= 2; round++) {
    world.out(uart::kInterruptEnable, uart::kTransmitEmpty);
    CHECK(world.line.pulses == 2 * round - 1);
    CHECK((world.in(uart::kInterruptId) & 0x0F) == uart::kIdTransmitEmpty);
    CHECK((world.in(uart::kInterruptId) & 0x0F) == uart::kNone);
    world.out(uart::kData, 'x');
    CHECK(world.line.pulses == 2 * round);
    CHECK((world.in(uart::kInterruptId) & 0x0F) == uart::kIdTransmitEmpty);
    world.out(uart::kInterruptEnable, 0);
  }
  world.loop->runOnce(1000);
  CHECK(readNow(world.sockets.mine.get()) == "xx");
}

TEST_CASE("what is typed comes with an interrupt, up to a bound") {
  World world;
  CHECK(world.serial.input(asBytes("a")) == 1);
  CHECK(world.line.pulses == 0);
  world.out(uart::kInterruptEnable, uart::kReceived);
  CHECK(world.line.pulses == 1);
  CHECK(world.serial.input(asBytes("bc")) == 2);
  CHECK(world.line.pulses == 2);
  std::string typed;
  CHECK((world.in(uart::kInterruptId) & 0x0F) == uart::kIdReceived);
  while (world.in(uart::kLineStatus)&uart::kDataReady) typed += static_cast<char>(world.in(uart::kData));
  CHECK(typed == "abc");
  CHECK((world.in(uart::kInterruptId) & 0x0F) == uart::kNone);

  const std::string flood(Serial::kMostInput + 5, 'z');
  CHECK(world.serial.input(asBytes(flood)) == Serial::kMostInput);
  world.out(uart::kInterruptId, uart::kEnableFifos | uart::kClearReceiver);
  CHECK((world.in(uart::kLineStatus)&uart::kDataReady) == 0);
}

TEST_CASE("in loopback what is written comes back and does not go out") {
  World world;
  world.out(uart::kModemControl, uart::kLoopback);
  world.out(uart::kData, 'L');
  CHECK(world.in(uart::kData) == 'L');
  CHECK(readNow(world.sockets.mine.get()).empty());
}

TEST_CASE("saved and loaded, registers are as they were; a child has no input of its parent's") {
  World world;
  world.out(uart::kInterruptEnable, uart::kReceived);
  world.out(uart::kScratch, 7);
  world.out(uart::kInterruptId, uart::kEnableFifos);
  Encoder out;
  world.serial.save(out);
  CountingLine line;
  Serial loaded(line);
  Decoder in(out.str());
  REQUIRE(loaded.load(in));
  CHECK(in.atEnd());
  std::byte value{};
  loaded.read(uart::kScratch, {&value, 1});
  CHECK(value == std::byte{7});
  loaded.input(asBytes("x"));
  CHECK(line.pulses == 1);
  Decoder cut(std::string_view(out.str()).substr(0, 3));
  CHECK_FALSE(loaded.load(cut));

  world.serial.input(asBytes("typed"));
  REQUIRE(world.loop->restart());
  world.serial.becomeChild();
  CHECK((world.in(uart::kLineStatus)&uart::kDataReady) == 0);
  world.out(uart::kData, 'x');  // nowhere to go, no harm
  CHECK(readNow(world.sockets.mine.get()).empty());
}
