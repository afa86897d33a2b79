// An 8250-family serial port (16550A), as much of it as Linux's early console and its ttyS0 use: both directions,
// interrupts, FIFO, loopback test. Placed on the port bus by the machine (COM1: ports 0x3F8 to 0x3FF, line 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "native/common/codec.h"
#include "native/common/result.h"
#include "native/vmm/devices/bus.h"
#include "native/vmm/devices/sink.h"
#include "native/vmm/virtio/device.h"

namespace bough::vmm {

class Serial : public Registers {
 public:
  /// Input that the guest has not read yet; more is not taken.
  static constexpr std::size_t kMostInput = std::size_t{16} << 10;

  explicit Serial(InterruptLine& line) : line_(line) {}

  void read(std::uint64_t offset, std::span<std::byte> data) override;
  void write(std::uint64_t offset, std::span<const std::byte> data) override;

  /// Writes to a duplicate of the machine's console descriptor, which the virtio console takes.
  Result<Done> attach(HostEnds& ends, EventLoop& loop);
  /// What somebody types; answers how many bytes were taken.
  std::size_t input(std::span<const std::byte> bytes);

  /// In a forked child: what was typed and not yet read was typed for the parent.
  void becomeChild();
  void save(Encoder& out) const;
  /// Errors: E_SAVED_DAMAGED.
  Result<Done> load(Decoder& in);

 private:
  std::uint8_t readRegister(std::uint64_t offset);
  void writeRegister(std::uint64_t offset, std::uint8_t value);
  std::uint8_t readInterruptId();
  std::uint8_t modemStatus() const;
  void transmit(std::uint8_t value);
  void receive(std::uint8_t value);
  void interrupt(std::uint8_t source);

  InterruptLine& line_;
  Sink sink_;
  std::deque<std::uint8_t> input_;
  std::uint8_t interruptEnable_ = 0;
  std::uint8_t fifoControl_ = 0;
  std::uint8_t lineControl_ = 0;
  std::uint8_t modemControl_ = 0;
  std::uint8_t scratch_ = 0;
  std::uint16_t divisor_ = 12;  // 9600 baud
  /// The transmitter went empty and the driver has not yet read that from the interrupt's identification.
  bool transmitEmptyPending_ = false;
};

}  // namespace bough::vmm
