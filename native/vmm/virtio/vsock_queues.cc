// What goes through the socket device's three queues: packets from the guest, packets to it, the transport reset event.
// See vsock.h.
#include <utility>

#include "native/vmm/virtio/vsock.h"

namespace bough::vmm {

namespace {

using vsock::Connection;
using vsock::Header;
using vsock::Ports;

/// Chains of one queue for one turn of the loop.
constexpr int kMostPerTurn = 256;
/// Refusals that wait for the guest's buffers; with more, its packets wait.
constexpr std::size_t kMostRefusals = 256;

}  // namespace

bool Vsock::notified(std::size_t index) {
  if (queues_.empty() || drained_) return false;
  if (index == kEvent && resetSent_ && queues_[kEvent].waiting() > eventBuffers_) resetSent_ = false;
  const bool more = takePackets();
  givePackets();
  return more;
}

bool Vsock::takePackets() {
  // A child's guest may still have packets of connections that it does not yet know to be gone: they wait until it
  // does.
  giveEvent();
  if (quarantined()) return false;
  Virtqueue& queue = queues_[kTransmit];
  for (int turn = 0; turn < kMostPerTurn; turn++) {
    if (refusals_.size() >= kMostRefusals) {
      givePackets();
      if (refusals_.size() >= kMostRefusals) return false;
    }
    const auto chain = queue.take();
    if (!chain) return false;
    handle(*chain);
    queue.answer(*chain, 0);
  }
  return true;
}

void Vsock::handle(const DescriptorChain& chain) {
  Header header{};
  if (chain.read(0, std::as_writable_bytes(std::span(&header, 1))) < sizeof header) return;
  // Not from this guest, not to this host, or not as long as it says: no packet at all.
  if (header.sourceCid != cid_ || header.destinationCid != vsock::kHostCid) return;
  if (header.size > chain.readableSize() - sizeof header) return;
  const Ports ports{header.destinationPort, header.sourcePort};
  const auto found = header.type == vsock::kStream ? connections_.find(ports.key()) : connections_.end();
  if (found != connections_.end()) return handleFor(*found->second, header, chain);
  if (header.operation == vsock::kReset) return;
  if (header.operation == vsock::kRequest && header.type == vsock::kStream) return requested(header);
  refuse(ports, header.type);
}

void Vsock::requested(const Header& header) {
  const Ports ports{header.destinationPort, header.sourcePort};
  UniqueFd socket = connections() < kMostConnections && connect_ ? connect_(ports.host) : UniqueFd();
  Entry* entry = socket ? add(ports, std::move(socket), Connection::Origin::kGuest) : nullptr;
  if (entry == nullptr) return refuse(ports);
  entry->connection.credit(header);
  takeTurn(*entry);
}

void Vsock::handleFor(Entry& entry, const Header& header, const DescriptorChain& chain) {
  Connection& connection = entry.connection;
  connection.credit(header);
  bool right = true;
  switch (header.operation) {
    case vsock::kResponse:
      right = !connection.open() && connection.accepted();
      break;
    case vsock::kData:
      right = connection.receive(chain, header.size);
      break;
    case vsock::kShutdown:
      right = connection.open();
      if (right && connection.shutdown(header.flags)) return guestClosed(entry);
      break;
    case vsock::kReset:
      return drop(entry);
    case vsock::kCreditUpdate:
      break;
    case vsock::kCreditRequest:
      connection.creditRequested();
      break;
    default:
      right = false;
  }
  if (!right) {
    refuse(connection.ports());
    return drop(entry);
  }
  watch(entry);
  takeTurn(entry);
}

void Vsock::guestClosed(Entry& entry) {
  // The guest's driver holds a closed socket until it hears of the reset. What the peer has not yet taken is still
  // written.
  refuse(entry.connection.ports());
  if (entry.connection.flushed()) return drop(entry);
  const auto found = connections_.find(entry.connection.ports().key());
  leaveTurns(entry);
  entry.connection.linger();
  lingering_.push_back(std::move(found->second));
  connections_.erase(found);
  watch(entry);
}

void Vsock::refuse(Ports ports, std::uint16_t type) { refusals_.push_back({ports, type}); }

void Vsock::givePackets() {
  if (queues_.empty() || drained_) return;
  giveEvent();
  if (quarantined()) return;
  Virtqueue& queue = queues_[kReceive];
  int given = 0;
  while (!refusals_.empty() || !turns_.empty()) {
    const auto chain = queue.take();
    if (!chain) break;
    if (giveRefusal(*chain)) continue;
    bool used = false;
    for (std::size_t left = turns_.size(); !used && left > 0; left--) {
      const auto found = connections_.find(turns_.front());
      turns_.pop_front();
      if (found == connections_.end()) continue;
      Entry& entry = *found->second;
      entry.inTurn = false;
      // Enough for this turn: the loop says again that the socket is readable.
      if (given >= kMostPerTurn) entry.connection.readable(false);
      used = giveFrom(entry, *chain);
      takeTurn(entry);
      watch(entry);
    }
    if (!used) {
      queue.untake();
      break;
    }
    given++;
  }
}

bool Vsock::giveRefusal(const DescriptorChain& chain) {
  if (refusals_.empty()) return false;
  const Refusal refusal = refusals_.front();
  refusals_.pop_front();
  Header header{};
  header.sourcePort = refusal.ports.host;
  header.destinationPort = refusal.ports.guest;
  header.type = refusal.type;
  header.operation = vsock::kReset;
  answer(chain, header);
  return true;
}

bool Vsock::giveFrom(Entry& entry, const DescriptorChain& chain) {
  const auto packet = entry.connection.nextPacket(chain, scratch_);
  if (!packet) return false;
  Header header{};
  header.sourcePort = entry.connection.ports().host;
  header.destinationPort = entry.connection.ports().guest;
  header.type = vsock::kStream;
  header.operation = packet->operation;
  header.flags = packet->flags;
  header.size = packet->size;
  entry.connection.describe(header);
  answer(chain, header);
  return true;
}

void Vsock::answer(const DescriptorChain& chain, Header header) {
  header.sourceCid = vsock::kHostCid;
  header.destinationCid = cid_;
  const std::size_t written = chain.write(0, std::as_bytes(std::span(&header, 1)));
  queues_[kReceive].answer(chain, written + header.size);
}

void Vsock::giveEvent() {
  if (!resetDue_) return;
  Virtqueue& queue = queues_[kEvent];
  const auto chain = queue.take();
  if (!chain) return;
  const std::uint32_t event = vsock::kTransportReset;
  queue.answer(*chain, chain->write(0, std::as_bytes(std::span(&event, 1))));
  resetDue_ = false;
  resetSent_ = true;
  // The driver gives the buffer back when it has dealt with the event.
  eventBuffers_ = queue.waiting();
  queue.askForKick();
}

}  // namespace bough::vmm
