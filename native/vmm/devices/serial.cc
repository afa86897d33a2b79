// See serial.h.
#include "native/vmm/devices/serial.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "native/vmm/devices/serial_registers.h"

namespace bough::vmm {

Result<Done> Serial::attach(HostEnds& ends, EventLoop& loop) {
  UniqueFd out;
  if (ends.console) {
    out.reset(::fcntl(ends.console.get(), F_DUPFD_CLOEXEC, 3));
    if (!out) return sysError(errno, "the console's descriptor");
  }
  return sink_.attach(std::move(out), loop);
}

void Serial::becomeChild() {
  sink_.becomeChild();
  input_.clear();
}

void Serial::read(std::uint64_t offset, std::span<std::byte> data) {
  // Wider accesses reach one register after another, as on a bus of bytes.
  for (std::size_t i = 0; i < data.size(); i++) data[i] = static_cast<std::byte>(readRegister(offset + i));
}

void Serial::write(std::uint64_t offset, std::span<const std::byte> data) {
  for (std::size_t i = 0; i < data.size(); i++) writeRegister(offset + i, static_cast<std::uint8_t>(data[i]));
}

std::uint8_t Serial::readRegister(std::uint64_t offset) {
  const bool latch = lineControl_ & uart::kDivisorLatch;
  switch (offset) {
    case uart::kData: {
      if (latch) return static_cast<std::uint8_t>(divisor_);
      if (input_.empty()) return 0;
      const std::uint8_t value = input_.front();
      input_.pop_front();
      return value;
    }
    case uart::kInterruptEnable:
      return latch ? static_cast<std::uint8_t>(divisor_ >> 8) : interruptEnable_;
    case uart::kInterruptId:
      return readInterruptId();
    case uart::kLineControl:
      return lineControl_;
    case uart::kModemControl:
      return modemControl_;
    case uart::kLineStatus:
      // What is written is gone at once.
      return static_cast<std::uint8_t>(uart::kHoldingEmpty | uart::kTransmitterEmpty |
                                       (input_.empty() ? 0 : uart::kDataReady));
    case uart::kModemStatus:
      return modemStatus();
    case uart::kScratch:
      return scratch_;
    default:
      return 0;
  }
}

void Serial::writeRegister(std::uint64_t offset, std::uint8_t value) {
  const bool latch = lineControl_ & uart::kDivisorLatch;
  switch (offset) {
    case uart::kData:
      if (latch)
        divisor_ = static_cast<std::uint16_t>((divisor_ & 0xFF00) | value);
      else
        transmit(value);
      return;
    case uart::kInterruptEnable: {
      if (latch) {
        divisor_ = static_cast<std::uint16_t>((divisor_ & 0x00FF) | (value << 8));
        return;
      }
      const std::uint8_t added = static_cast<std::uint8_t>(value & ~interruptEnable_);
      interruptEnable_ = value & 0x0F;
      // A transmitter that is empty says so as soon as it is asked (data sheet, 8.6.7); Linux tests that it does.
      if (added & uart::kTransmitEmpty) interrupt(uart::kTransmitEmpty);
      if ((added & uart::kReceived) && !input_.empty()) interrupt(uart::kReceived);
      return;
    }
    case uart::kInterruptId:
      fifoControl_ = value;
      if (value & uart::kClearReceiver) input_.clear();
      return;
    case uart::kLineControl:
      lineControl_ = value;
      return;
    case uart::kModemControl:
      modemControl_ = value & 0x1F;
      return;
    case uart::kScratch:
      scratch_ = value;
      return;
    default:
      return;
  }
}

std::uint8_t Serial::readInterruptId() {
  const std::uint8_t fifos = (fifoControl_ & uart::kEnableFifos) ? uart::kFifosOn : 0;
  if ((interruptEnable_ & uart::kReceived) && !input_.empty())
    return static_cast<std::uint8_t>(fifos | uart::kIdReceived);
  if ((interruptEnable_ & uart::kTransmitEmpty) && transmitEmptyPending_) {
    transmitEmptyPending_ = false;
    return static_cast<std::uint8_t>(fifos | uart::kIdTransmitEmpty);
  }
  return static_cast<std::uint8_t>(fifos | uart::kNone);
}

std::uint8_t Serial::modemStatus() const {
  // A terminal is there and ready.
  if (!(modemControl_ & uart::kLoopback)) return uart::kCts | uart::kDsr | uart::kCarrier;
  // In loopback the outputs come back as inputs (data sheet, 8.7): Linux looks for it to know that a port is there.
  std::uint8_t status = 0;
  if (modemControl_ & uart::kRts) status |= uart::kCts;
  if (modemControl_ & uart::kDtr) status |= uart::kDsr;
  if (modemControl_ & uart::kOut1) status |= uart::kRing;
  if (modemControl_ & uart::kOut2) status |= uart::kCarrier;
  return status;
}

void Serial::transmit(std::uint8_t value) {
  if (modemControl_ & uart::kLoopback) {
    receive(value);
  } else {
    const auto byte = static_cast<std::byte>(value);
    sink_.write({&byte, 1});
  }
  interrupt(uart::kTransmitEmpty);
}

void Serial::receive(std::uint8_t value) {
  if (input_.size() >= kMostInput) return;
  input_.push_back(value);
  interrupt(uart::kReceived);
}

std::size_t Serial::input(std::span<const std::byte> bytes) {
  const std::size_t taken = std::min(bytes.size(), kMostInput - input_.size());
  for (const std::byte each : bytes.first(taken)) input_.push_back(static_cast<std::uint8_t>(each));
  if (taken > 0) interrupt(uart::kReceived);
  return taken;
}

void Serial::interrupt(std::uint8_t source) {
  if (source == uart::kTransmitEmpty) transmitEmptyPending_ = true;
  if (interruptEnable_ & source) line_.pulse();
}

void Serial::save(Encoder& out) const {
  out.byte(interruptEnable_);
  out.byte(fifoControl_);
  out.byte(lineControl_);
  out.byte(modemControl_);
  out.byte(scratch_);
  out.number(divisor_);
  out.flag(transmitEmptyPending_);
}

Result<Done> Serial::load(Decoder& in) {
  interruptEnable_ = in.byte() & 0x0F;
  fifoControl_ = in.byte();
  lineControl_ = in.byte();
  modemControl_ = in.byte() & 0x1F;
  scratch_ = in.byte();
  divisor_ = static_cast<std::uint16_t>(in.number());
  transmitEmptyPending_ = in.flag();
  input_.clear();
  if (in.ok()) return Done{};
  return Error{EINVAL, "E_SAVED_DAMAGED",
               "the saved state of the serial port cannot be right: save the machine again, or load another file"};
}

}  // namespace bough::vmm
