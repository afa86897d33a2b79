// What goes through the socket device's queues (VIRTIO 1.2, section 5.10.6, struct virtio_vsock_hdr, and 5.10.6.7,
// events). Used by vsock.cc, vsock_connection.cc and the tests.
#pragma once

#include <cstdint>

namespace bough::vmm::vsock {

#pragma pack(push, 1)
struct Header {
  std::uint64_t sourceCid;
  std::uint64_t destinationCid;
  std::uint32_t sourcePort;
  std::uint32_t destinationPort;
  /// Bytes of payload that follow.
  std::uint32_t size;
  std::uint16_t type;
  std::uint16_t operation;
  std::uint32_t flags;
  /// Section 5.10.6.3: the sender's whole receive buffer, and how much it has taken out of it so far (wrapping).
  std::uint32_t bufferSize;
  std::uint32_t forwarded;
};
#pragma pack(pop)
static_assert(sizeof(Header) == 44);

constexpr std::uint64_t kHostCid = 2;
constexpr std::uint16_t kStream = 1;
/// Feature bit 0: stream sockets.
constexpr std::uint64_t kFeatureStream = 1;

enum Operation : std::uint16_t {
  kInvalid = 0,
  kRequest = 1,
  kResponse = 2,
  kReset = 3,
  kShutdown = 4,
  kData = 5,
  kCreditUpdate = 6,
  kCreditRequest = 7,
};

/// Flags of kShutdown: what the sender of the packet will not do any more.
enum Shutdown : std::uint32_t { kNoReceive = 1, kNoSend = 2, kNeither = 3 };

/// The event queue's one event, an le32: all connections are gone.
constexpr std::uint32_t kTransportReset = 0;

}  // namespace bough::vmm::vsock
