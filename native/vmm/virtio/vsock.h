// The socket device (VIRTIO 1.2, section 5.10): streams between the guest's vsock ports and unix sockets of the host.
// All of the host's side is in this process, so that it forks with the machine: there is no vhost.
//
// Host to guest: a client of the machine's listening socket says "CONNECT <port>\n" and gets "OK <its port>\n" or is
// closed (vsock_clients.h). Guest to host: the machine's owner gives a connected socket for a port, or none. After a
// fork the parent's connections live on; the child's guest is told that all of its connections are gone, and nobody
// talks to it before it has understood that.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "native/vmm/virtio/device.h"
#include "native/vmm/virtio/queue.h"
#include "native/vmm/virtio/vsock_clients.h"
#include "native/vmm/virtio/vsock_connection.h"
#include "native/vmm/virtio/vsock_packet.h"

namespace bough::vmm {

class Vsock : public VirtioDevice {
 public:
  static constexpr std::size_t kMostConnections = 1024;
  /// A connected stream socket for a guest that connects to the host's `port`; empty refuses. Must not block.
  using Connect = std::function<UniqueFd(std::uint32_t port)>;

  /// `cid`: the guest's, 3 and up.
  Vsock(std::uint32_t cid, Connect connect);
  ~Vsock() override;

  std::uint32_t id() const override { return 19; }
  std::uint64_t features() const override { return vsock::kFeatureStream; }
  std::span<const std::uint16_t> queueSizes() const override { return kSizes; }
  void readConfig(std::uint64_t offset, std::span<std::byte> data) const override;
  void activate(std::span<Virtqueue> queues, std::uint64_t /*features*/) override { queues_ = queues; }
  void reset() override;
  bool notified(std::size_t index) override;

  Result<Done> attach(HostEnds& ends, EventLoop& loop) override;
  void drain() override { drained_ = true; }
  void resume() override;
  void becomeChild() override;

  void save(Encoder& out) const override;
  Result<Done> load(Decoder& in) override;

  /// Also those whose guest has closed and whose last bytes are still on their way to a slow peer.
  std::size_t connections() const { return connections_.size() + lingering_.size(); }

 private:
  enum Queue : std::size_t { kReceive = 0, kTransmit = 1, kEvent = 2 };
  static constexpr std::uint16_t kSizes[] = {256, 256, 16};

  /// A connection and what the device knows of it.
  struct Entry {
    explicit Entry(vsock::Connection made) : connection(std::move(made)) {}
    vsock::Connection connection;
    bool inTurn = false;
    bool watched = false;
    std::uint32_t watchedFor = 0;
    bool peerHungUp = false;
  };

  // The guest's packets.
  bool takePackets();
  void handle(const DescriptorChain& chain);
  void requested(const vsock::Header& header);
  void handleFor(Entry& entry, const vsock::Header& header, const DescriptorChain& chain);
  void guestClosed(Entry& entry);
  void refuse(vsock::Ports ports, std::uint16_t type = vsock::kStream);

  // Packets to the guest.
  void givePackets();
  bool giveRefusal(const DescriptorChain& chain);
  bool giveFrom(Entry& entry, const DescriptorChain& chain);
  void answer(const DescriptorChain& chain, vsock::Header header);
  void giveEvent();
  bool quarantined() const { return resetDue_ || resetSent_; }

  // The host's sockets.
  void clientWants(UniqueFd client, std::uint32_t port);
  Entry* add(vsock::Ports ports, UniqueFd socket, vsock::Connection::Origin origin);
  void socketReady(Entry& entry, std::uint32_t events);
  void takeTurn(Entry& entry);
  void leaveTurns(Entry& entry);
  void watch(Entry& entry);
  void unwatch(Entry& entry);
  void drop(Entry& entry);
  void dropAll();

  std::uint32_t cid_;
  Connect connect_;
  vsock::Clients clients_;
  EventLoop* loop_ = nullptr;
  std::span<Virtqueue> queues_;
  bool drained_ = false;

  std::unordered_map<std::uint64_t, std::unique_ptr<Entry>> connections_;
  std::vector<std::unique_ptr<Entry>> lingering_;
  /// Connections that may have a packet for the guest, one packet each in turn.
  std::deque<std::uint64_t> turns_;
  struct Refusal {
    vsock::Ports ports;
    std::uint16_t type = vsock::kStream;
  };
  std::deque<Refusal> refusals_;
  /// The guest is to hear of a transport reset; it was told and has not yet given the event's buffer back.
  bool resetDue_ = false;
  bool resetSent_ = false;
  std::size_t eventBuffers_ = 0;
  std::vector<iovec> scratch_;
};

}  // namespace bough::vmm
