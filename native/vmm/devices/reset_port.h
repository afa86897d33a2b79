// Port 0x64, the command port of a PC's keyboard controller, of which one command is left: 0xFE, reset the machine. A
// Linux guest with `reboot=k` ends itself so. Placed on the port bus by the machine.
#pragma once

#include <functional>
#include <utility>

#include "native/vmm/devices/bus.h"

namespace bough::vmm {

class ResetPort : public Registers {
 public:
  static constexpr std::byte kReset{0xFE};

  /// `reset` is called on a vCPU's thread, device lock held.
  explicit ResetPort(std::function<void()> reset) : reset_(std::move(reset)) {}

  /// Status: nothing to read, ready for a command (Linux's kb_wait() asks before it writes one).
  void read(std::uint64_t /*offset*/, std::span<std::byte> /*data*/) override {}
  void write(std::uint64_t /*offset*/, std::span<const std::byte> data) override {
    if (data.size() == 1 && data[0] == kReset) reset_();
  }

 private:
  std::function<void()> reset_;
};

}  // namespace bough::vmm
