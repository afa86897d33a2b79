// The registers of a 16550A UART (National Semiconductor PC16550D data sheet, section 8), by offset from its first
// port. Used by serial.cc and its test.
#pragma once

#include <cstdint>

namespace bough::vmm::uart {

enum Offset : std::uint64_t {
  kData = 0,             // receiver buffer, transmitter holding; divisor latch low while DLAB is set
  kInterruptEnable = 1,  // divisor latch high while DLAB is set
  kInterruptId = 2,      // read; written it is the FIFO control
  kLineControl = 3,
  kModemControl = 4,
  kLineStatus = 5,
  kModemStatus = 6,
  kScratch = 7,
};

enum InterruptEnable : std::uint8_t { kReceived = 1, kTransmitEmpty = 2 };
enum InterruptId : std::uint8_t { kNone = 1, kIdTransmitEmpty = 2, kIdReceived = 4, kFifosOn = 0xC0 };
enum FifoControl : std::uint8_t { kEnableFifos = 1, kClearReceiver = 2 };
enum LineControl : std::uint8_t { kDivisorLatch = 0x80 };
enum ModemControl : std::uint8_t { kDtr = 1, kRts = 2, kOut1 = 4, kOut2 = 8, kLoopback = 16 };
enum LineStatus : std::uint8_t { kDataReady = 1, kHoldingEmpty = 0x20, kTransmitterEmpty = 0x40 };
enum ModemStatus : std::uint8_t { kCts = 0x10, kDsr = 0x20, kRing = 0x40, kCarrier = 0x80 };

}  // namespace bough::vmm::uart
