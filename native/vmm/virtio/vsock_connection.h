// One stream between a guest's socket and a host's: both directions' flow control, half closes, and what is to be told
// to the guest next. The device (vsock.h) owns it, feeds it with the guest's packets and asks it for packets to the
// guest.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/common/unique_fd.h"
#include "native/vmm/virtio/queue.h"
#include "native/vmm/virtio/vsock_packet.h"

namespace bough::vmm::vsock {

struct Ports {
  std::uint32_t host = 0;
  std::uint32_t guest = 0;
  std::uint64_t key() const { return (std::uint64_t{host} << 32) | guest; }
};

class Connection {
 public:
  /// What the guest may send before its bytes are in the host's socket; the most that is kept here for one connection.
  static constexpr std::uint32_t kWindow = std::uint32_t{128} << 10;

  enum class Origin { kHost, kGuest };

  /// `socket`: a connected stream socket, non-blocking. One that the host began is open once the guest has accepted.
  Connection(Ports ports, UniqueFd socket, Origin origin);

  const Ports& ports() const { return ports_; }
  int fd() const { return socket_.get(); }
  bool open() const { return open_; }

  // The guest's packets.

  /// Of every packet: what the guest says about its receive buffer.
  void credit(const Header& header);
  /// The guest accepted; tells the client. False: it cannot be told.
  bool accepted();
  /// `size` bytes of the chain's readable part behind the header. False: more than the window, or after its end.
  bool receive(const DescriptorChain& chain, std::uint32_t size);
  /// The guest will not send, or not receive, any more. True: neither; the connection is over once flushed() is true.
  bool shutdown(std::uint32_t flags);
  void creditRequested() { creditAsked_ = true; }

  // The host's socket.

  void readable(bool now) { readable_ = now; }
  /// Writes what is kept.
  void flush();
  bool flushed() const { return kept_.empty(); }
  /// Nothing is read from it any more; only what is kept is still written.
  void linger() { guestGone_ = true; }
  /// What to wait for on the socket (EPOLLIN, EPOLLOUT, both, or 0).
  std::uint32_t interest() const;

  // Packets to the guest.

  bool hasPacket() const;
  struct Packet {
    Operation operation = kInvalid;
    std::uint32_t flags = 0;
    std::uint32_t size = 0;
  };
  /// The next packet; a kData packet's bytes are then in the chain's writable part behind the header. Nothing if it
  /// turns out that there is none.
  std::optional<Packet> nextPacket(const DescriptorChain& chain, std::vector<iovec>& scratch);
  /// Fills in what every packet says.
  void describe(Header& header);

 private:
  std::uint32_t guestRoom() const;
  std::uint32_t forwarded() const { return received_ - static_cast<std::uint32_t>(kept_.size()); }
  bool creditDue() const { return creditAsked_ || forwarded() - forwardedTold_ >= kWindow / 2; }
  bool canRead() const { return open_ && readable_ && !hostEnded_ && !guestGone_ && !(guestFlags_ & kNoReceive); }
  void hostEnded();
  void peerGone();
  void endWriting();

  Ports ports_;
  UniqueFd socket_;
  bool open_;

  // Towards the guest.
  bool requestDue_;
  bool responseDue_;
  bool readable_ = false;
  bool hostEnded_ = false;
  bool creditAsked_ = false;
  bool creditRequestSent_ = false;
  /// kNoSend, kNoReceive as the guest is to know them, and as it was told.
  std::uint32_t hostFlags_ = 0;
  std::uint32_t hostFlagsTold_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t guestBuffer_ = 0;
  std::uint32_t guestForwarded_ = 0;

  // Towards the host.
  std::uint32_t received_ = 0;
  std::uint32_t forwardedTold_ = 0;
  std::uint32_t guestFlags_ = 0;
  bool guestGone_ = false;
  /// The peer reads no more: what the guest sends is taken and thrown away, as a network would.
  bool discarding_ = false;
  std::string kept_;
};

}  // namespace bough::vmm::vsock
