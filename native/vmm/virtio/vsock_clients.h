// The host's way to a guest's vsock ports: a listening unix socket, on which each client says "CONNECT <port>\n" first.
// Used by vsock.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm::vsock {

class Clients {
 public:
  /// Clients that have not yet said where to; one more, and the one that has waited longest is let go.
  static constexpr std::size_t kMostSilent = 64;

  /// `connect` gets each client with the port that it wants; what follows its line is still in the socket.
  explicit Clients(std::function<void(UniqueFd client, std::uint32_t port)> connect) : connect_(std::move(connect)) {}
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;
  ~Clients();

  /// An empty listener: nobody can connect.
  Result<Done> attach(UniqueFd listener, EventLoop& loop);
  /// In a forked child, after the loop was restarted: clients and listener are the parent's.
  void becomeChild();

 private:
  struct Silent {
    UniqueFd socket;
    /// What it has said so far.
    std::string line;
  };
  void accept();
  void refuseOne();
  void hear(std::list<Silent>::iterator client);
  void forget(std::list<Silent>::iterator client);

  std::function<void(UniqueFd client, std::uint32_t port)> connect_;
  EventLoop* loop_ = nullptr;
  UniqueFd listener_;
  /// Given up for a moment when descriptors run out, so that a client is refused and does not wait for ever.
  UniqueFd spare_;
  /// In the order in which they came.
  std::list<Silent> silent_;
};

}  // namespace bough::vmm::vsock
