// Tests of Gate with real threads.
#include "native/vmm/machine/gate.h"

#include <doctest/doctest.h>

#include <thread>

using bough::vmm::Gate;
using namespace std::chrono_literals;

TEST_CASE("threads stop at a closed gate and go on when it opens, however quickly it closes again") {
  Gate gate(2);
  std::atomic<bool> end = false;
  std::atomic<std::uint64_t> turns = 0;
  const auto work = [&](unsigned me) {
    while (!end) {
      gate.pass(me);
      turns++;
    }
    gate.leave(me);
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  for (int i = 0; i < 2000; i++) {
    gate.close();
    REQUIRE(gate.waitForAll(std::chrono::steady_clock::now() + 60s));
    const std::uint64_t before = turns;
    for (int spin = 0; spin < 50; spin++) std::this_thread::yield();
    REQUIRE(turns == before);
    gate.open();
  }
  end = true;
  first.join();
  second.join();
  gate.close();
  CHECK(gate.waitForAll(std::chrono::steady_clock::now() + 60s));
}

TEST_CASE("waiting for a thread that does not come ends at the deadline") {
  Gate gate(1);
  gate.close();
  CHECK_FALSE(gate.waitForAll(std::chrono::steady_clock::now() + 1ms));
}
