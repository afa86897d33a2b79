// One command of the keyboard controller is left, and nothing else resets.
#include "native/vmm/devices/reset_port.h"

#include <doctest/doctest.h>

#include <array>

using namespace bough::vmm;

TEST_CASE("0xFE resets, nothing else does, and the port says that it is ready") {
  int resets = 0;
  ResetPort port([&] { resets++; });
  Bus bus;
  bus.add(0x64, 1, port);
  for (unsigned command = 0; command < 256; command++) {
    const auto byte = static_cast<std::byte>(command);
    bus.write(0x64, {&byte, 1});
  }
  CHECK(resets == 1);
  std::array<std::byte, 1> status{std::byte{0xFF}};
  bus.read(0x64, status);
  CHECK(status[0] == std::byte{0});
  bus.read(0x63, status);
  CHECK(status[0] == std::byte{0xFF});
  const std::array<std::byte, 2> wide{std::byte{0xFE}, std::byte{0}};
  bus.write(0x64, wide);
  CHECK(resets == 1);
}
