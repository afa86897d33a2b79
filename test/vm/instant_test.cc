// One instant: everything that a CPU and its devices hold is of the same moment in a machine and in its forks. Guests
// look at themselves all the time (test/vm/guests) and say FAIL when something does not fit.
#include <doctest/doctest.h>

#include <cstdio>

#include "test/vm/harness/guest_lines.h"
#include "test/vm/harness/host.h"
#include "test/vm/harness/numbers.h"
#include "test/vm/harness/rounds.h"
#include "test/vm/harness/vm.h"

using namespace bough::vmtest;

namespace {

const Json kVerify{{"verify", true}};

/// Both sides of forks at arbitrary moments go on without a FAIL.
void goesOn(Vm& vm, unsigned forks, unsigned lines) {
  for (Rounds round(forks); round.next();) {
    INFO("fork " << round.index());
    Vm child = vm.forkOne(false, kVerify);
    for (Vm* side : {&vm, &child}) {
      linesOn(*side, lines);
      CHECK(complaint(*side) == "");
    }
  }
}

/// Forks of a guest that writes numbers all the time: no byte is lost or written twice.
void forksOfStream(Vm& vm, const Numbers& numbers, unsigned forks) {
  vm.console().waitForMore(100);
  for (Rounds round(forks); round.next();) {
    INFO("fork " << round.index());
    CHECK(forkOfStream(vm, numbers, kVerify) == "");
    vm.console().waitForMore(vm.console().size() + 100);
  }
  CHECK(numbers.differs(vm.console().text(), 0) == "");
}

}  // namespace

TEST_SUITE("one instant") {
  TEST_CASE("a byte that is being written to the serial port is in one side's output exactly once") {
    Vm vm("stream");
    forksOfStream(vm, {}, 200);
  }

  TEST_CASE("a count in a register, in memory and in a ring of pages") {
    Vm vm("stores");
    forksOfStream(vm, {0x2000, 0x2000}, 200);
  }

  TEST_CASE("vector and floating-point registers, MSRs, FS and GS base, debug registers, CR2, CR8") {
    Vm vm("registers");
    vm.console().waitForMore(60);
    CHECK(complaint(vm) == "");
    std::size_t from = 0;
    const std::uint64_t features = field(vm.console().line(from), 1);
    std::printf("registers: SSE%s%s%s\n", (features & 1) != 0 ? ", AVX" : "", (features & 2) != 0 ? ", TSC_AUX" : "",
                (features & 4) != 0 ? "; this host shows AVX and has none" : "");
    goesOn(vm, 50, 2);
  }

  TEST_CASE("interrupts that are pending in the local APIC and in the PIC come exactly once") {
    Vm vm("pending");
    vm.console().waitForMore(50);
    goesOn(vm, 100, 3);
  }

  TEST_CASE("a sleeping CPU is woken by each kind of timer") {
    Vm vm("timers");
    vm.console().waitForMore(50);
    for (const char mode : {'p', 'o', 'd'}) {
      INFO("mode " << mode);
      const std::size_t before = vm.console().size();
      vm.type(std::string(1, mode));
      vm.console().waitForMore(before + 100);
      if (vm.console().text(before).find("none") != std::string::npos) {
        std::printf("timers: this CPU has no mode %c\n", mode);
        continue;
      }
      for (Rounds round(150); round.next();) {
        INFO("fork " << round.index());
        Vm child = vm.forkOne(false, kVerify);
        for (Vm* side : {&child, &vm}) {
          const std::string first = linesOn(*side, 1);
          std::uint64_t pit = field(first, 0);
          std::uint64_t apic = field(first, 1);
          // Both have come three times more; if one never does, this ends at the deadline of the line that should have
          // it.
          const auto end = Clock::now() + Seconds(30);
          for (std::string line = first; field(line, 0) < pit + 3 || field(line, 1) < apic + 3;) {
            REQUIRE_MESSAGE(Clock::now() < end, first << " has become only " << line);
            line = linesOn(*side, 1);
          }
        }
      }
    }
  }

  TEST_CASE("four CPUs: one asleep, two that interrupt each other all the time") {
    Vm vm("smp", {{"vcpus", 4}});
    vm.console().waitFor("started\n");
    goesOn(vm, 100, 2);
  }

  TEST_CASE("KVM's clock and the TSC never go back, and the wall clock is right in both") {
    Vm vm("clock");
    vm.console().waitFor("reading\n");
    const auto wallClockOff = [](Vm& side) {
      const std::string line = side.command("t");
      const double guest = static_cast<double>(field(line, 1)) + static_cast<double>(field(line, 2)) / 1e9 +
                           static_cast<double>(field(line, 0)) / 1e9;
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME, &now);
      return std::abs(guest - (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9));
    };
    for (Rounds round(100); round.next();) {
      INFO("fork " << round.index());
      const std::string before = vm.command("t");
      Vm child = vm.forkOne(false, kVerify);
      for (Vm* side : {&vm, &child}) {
        const std::string after = side->command("t");
        CHECK(field(after, 0) > field(before, 0));
        CHECK(field(after, 3) > field(before, 3));
        CHECK(wallClockOff(*side) < 2.0);
        CHECK(complaint(*side) == "");
      }
    }
    // A checkpoint that has slept for a while: time went by for it, too.
    Vm checkpoint = vm.forkOne(true);
    vm.must("pause");
    const std::uint64_t slept = field(vm.must("resume").is_null() ? "" : vm.command("t"), 0);
    Vm late = checkpoint.forkOne();
    CHECK(field(late.command("t"), 0) > slept);
    CHECK(wallClockOff(late) < 2.0);
  }
}
