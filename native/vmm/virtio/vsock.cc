// The socket device's life and its host side: connections made, watched, dropped, forked. What goes through its queues
// is in vsock_queues.cc. See vsock.h.
#include "native/vmm/virtio/vsock.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace bough::vmm {

using vsock::Connection;
using vsock::Ports;

Vsock::Vsock(std::uint32_t cid, Connect connect)
    : cid_(cid),
      connect_(std::move(connect)),
      clients_([this](UniqueFd client, std::uint32_t port) { clientWants(std::move(client), port); }) {}

Vsock::~Vsock() { dropAll(); }

void Vsock::readConfig(std::uint64_t offset, std::span<std::byte> data) const {
  const std::uint64_t cid = cid_;
  if (offset >= sizeof cid) return;
  std::memcpy(data.data(), reinterpret_cast<const std::byte*>(&cid) + offset,
              std::min(data.size(), sizeof cid - offset));
}

void Vsock::reset() {
  queues_ = {};
  dropAll();
  resetDue_ = resetSent_ = false;
}

Result<Done> Vsock::attach(HostEnds& ends, EventLoop& loop) {
  loop_ = &loop;
  return clients_.attach(std::move(ends.vsock), loop);
}

void Vsock::resume() {
  drained_ = false;
  // The driver may have given an event's buffer back while its kick was not heard.
  while (notified(kEvent)) {
  }
}

void Vsock::becomeChild() {
  // Closed, not shut down: their other ends are the parent's peers, who go on. The loop has no watches any more.
  const auto forget = [](Entry& entry) { entry.watched = false; };
  for (auto& [key, entry] : connections_) forget(*entry);
  for (auto& entry : lingering_) forget(*entry);
  clients_.becomeChild();
  dropAll();
  resetDue_ = !queues_.empty();
  resetSent_ = false;
}

void Vsock::save(Encoder& out) const { out.number(cid_); }

Result<Done> Vsock::load(Decoder& in) {
  const std::uint32_t cid = in.number32();
  if (!in.ok() || cid <= vsock::kHostCid) {
    return Error{EINVAL, "E_SAVED_DAMAGED",
                 "the saved state of the socket device cannot be right: save the machine again, or load another file"};
  }
  cid_ = cid;
  // The saved machine's connections are gone.
  resetDue_ = true;
  resetSent_ = false;
  return Done{};
}

void Vsock::clientWants(UniqueFd client, std::uint32_t port) {
  // No driver, nobody to ask: the client is closed and may try again.
  if (queues_.empty()) return;
  Ports ports{0, port};
  for (int attempt = 0; attempt < 16; attempt++) {
    // Above the ports that services have, and not the wildcard.
    if (::getrandom(&ports.host, sizeof ports.host, GRND_NONBLOCK) != sizeof ports.host) return;
    ports.host |= 0x4000'0000;
    if (ports.host == UINT32_MAX || connections_.contains(ports.key())) continue;
    Entry* entry = add(ports, std::move(client), Connection::Origin::kHost);
    if (entry == nullptr) return;
    takeTurn(*entry);
    givePackets();
    return;
  }
}

Vsock::Entry* Vsock::add(Ports ports, UniqueFd socket, Connection::Origin origin) {
  if (connections() >= kMostConnections) return nullptr;
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) < 0) return nullptr;
  auto entry = std::make_unique<Entry>(Connection(ports, std::move(socket), origin));
  Entry* added = entry.get();
  connections_[ports.key()] = std::move(entry);
  watch(*added);
  return added;
}

void Vsock::socketReady(Entry& entry, std::uint32_t events) {
  Connection& connection = entry.connection;
  const bool hungUp = events & (EPOLLHUP | EPOLLERR);
  entry.peerHungUp |= hungUp;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) connection.flush();

  const auto lingering =
      std::find_if(lingering_.begin(), lingering_.end(), [&](const auto& each) { return each.get() == &entry; });
  if (lingering != lingering_.end()) {
    if (connection.flushed()) {
      unwatch(entry);
      lingering_.erase(lingering);
    } else {
      watch(entry);
    }
    return;
  }
  if (hungUp && !connection.open()) {
    // A client that did not wait for the guest's answer.
    refuse(connection.ports());
    drop(entry);
  } else {
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) connection.readable(true);
    watch(entry);
    takeTurn(entry);
  }
  givePackets();
}

void Vsock::takeTurn(Entry& entry) {
  if (entry.inTurn || !entry.connection.hasPacket()) return;
  entry.inTurn = true;
  turns_.push_back(entry.connection.ports().key());
}

void Vsock::watch(Entry& entry) {
  const std::uint32_t wanted = entry.connection.interest();
  const int fd = entry.connection.fd();
  // epoll tells of a hang-up even where nothing is waited for: once it is known, that would be for ever.
  if (wanted == 0 && entry.peerHungUp) return unwatch(entry);
  if (!entry.watched) {
    entry.watched = loop_->watch(fd, wanted, [this, &entry](std::uint32_t events) { socketReady(entry, events); }).ok();
  } else if (wanted != entry.watchedFor) {
    loop_->change(fd, wanted);
  }
  entry.watchedFor = wanted;
}

void Vsock::unwatch(Entry& entry) {
  if (std::exchange(entry.watched, false)) loop_->unwatch(entry.connection.fd());
}

void Vsock::drop(Entry& entry) {
  unwatch(entry);
  leaveTurns(entry);
  connections_.erase(entry.connection.ports().key());
}

void Vsock::leaveTurns(Entry& entry) {
  // Or a guest without receive buffers that connects and resets for ever would fill the host's memory with turns.
  if (std::exchange(entry.inTurn, false)) std::erase(turns_, entry.connection.ports().key());
}

void Vsock::dropAll() {
  for (auto& [key, entry] : connections_) unwatch(*entry);
  for (auto& entry : lingering_) unwatch(*entry);
  connections_.clear();
  lingering_.clear();
  turns_.clear();
  refusals_.clear();
}

}  // namespace bough::vmm
