// The host's side of a device in tests: a loop that is turned until something has happened, sockets, listeners.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "native/vmm/io/event_loop.h"
#include "native/vmm/virtio/test_driver.h"

namespace bough::vmm {

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) throw std::runtime_error("socketpair");
    mine.reset(fds[0]);
    theirs.reset(fds[1]);
  }
  UniqueFd mine;
  UniqueFd theirs;
};

/// Whatever is there now, without waiting; "" also at the end.
inline std::string readNow(int fd, std::size_t most = std::size_t{1} << 20) {
  std::string bytes(most, '\0');
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}
/// The other side has closed, and nothing is left to read.
inline bool atEnd(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}
inline bool sendAll(int fd, std::string_view bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

/// A listening unix socket without a name in the file system.
class TestListener {
 public:
  TestListener() : socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // Linux gives a name of its own (unix(7), autobind).
    sockaddr_un any{};
    any.sun_family = AF_UNIX;
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof(sa_family_t)) != 0 ||
        ::listen(socket.get(), 1024) != 0)
      throw std::runtime_error("listen");
    size_ = sizeof name_;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name_), &size_);
  }
  UniqueFd connect() const {
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&name_), size_) != 0)
      throw std::runtime_error("connect");
    return client;
  }
  UniqueFd socket;

 private:
  sockaddr_un name_{};
  socklen_t size_ = 0;
};

/// A device with its driver and the machine's loop.
struct TestHost {
  explicit TestHost(VirtioDevice& made) : device(made), driver(made) {}
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;
  /// The device outlives its loop here, unlike in a machine: it lets go of its ends first.
  ~TestHost() {
    if (loop->restart()) device.becomeChild();
  }

  /// One turn, as the machine takes it.
  void turn(int timeoutMs = 0) {
    loop->runOnce(timeoutMs);
    driver.serve();
    driver.mmio.signal();
  }
  /// Turns until `happened`; false after 20 seconds.
  bool until(const std::function<bool()>& happened) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!happened()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      turn(20);
    }
    return true;
  }
  /// Nothing more happens: the loop has no event left.
  void settle() {
    pollfd ready{loop->fd(), POLLIN, 0};
    for (int i = 0; i < 10'000; i++) {
      turn();
      if (::poll(&ready, 1, 0) == 0) return;
    }
    throw std::runtime_error("the loop never comes to rest");
  }
  void attach(HostEnds ends) {
    if (!device.attach(ends, *loop)) throw std::runtime_error("attach");
  }

  VirtioDevice& device;
  std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
  TestDriver driver;
};

}  // namespace bough::vmm
