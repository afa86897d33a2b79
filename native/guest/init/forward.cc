// See forward.h.
#include "native/guest/init/forward.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

namespace bough::guest {
namespace {

constexpr std::size_t kBuffer = 64 * 1024;

/// One direction: what was read and is not written yet.
struct Half {
  std::string bytes;
  std::size_t sent = 0;
  bool readEnded = false;
  bool writeEnded = false;

  bool empty() const { return sent == bytes.size(); }
  bool wantsRead() const { return !readEnded && bytes.size() - sent < kBuffer; }
};

class Forward : public std::enable_shared_from_this<Forward> {
 public:
  Forward(Loop& loop, Connection::Raw host, std::uint64_t id, std::uint16_t port)
      : loop_(loop), host_(std::move(host.fd)), id_(id), port_(port) {
    toGuest_.bytes = std::move(host.received);
    toHost_.bytes = std::move(host.unsent);
  }

  void start() {
    if (connect(AF_INET)) return;
    fail(errno);
  }

 private:
  bool connect(int family) {
    family_ = family;
    guest_.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!guest_) return false;
    sockaddr_storage address{};
    socklen_t size = 0;
    if (family == AF_INET) {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
      v4->sin_family = AF_INET;
      v4->sin_port = htons(port_);
      v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof *v4;
    } else {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(port_);
      v6->sin6_addr = in6addr_loopback;
      size = sizeof *v6;
    }
    if (::connect(guest_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 && errno != EINPROGRESS) {
      return family == AF_INET && connect(AF_INET6);
    }
    guestToken_ =
        loop_.watch(guest_.get(), EPOLLOUT, [self = shared_from_this()](std::uint32_t) { self->connected(); });
    return guestToken_ != 0;
  }

  void connected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(guest_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    loop_.unwatch(std::exchange(guestToken_, 0));
    if (error != 0) {
      if (family_ == AF_INET && connect(AF_INET6)) return;
      return fail(error);
    }
    toHost_.bytes += toLine(Json{{"id", id_}, {"result", Json::object()}});
    pump();
  }

  void fail(int error) {
    const std::string message = "Nobody in the guest answers on port " + std::to_string(port_) + ": " +
                                std::strerror(error) + ". Start the program that listens there.";
    const Json why{{"code", "E_NO_PORT"}, {"message", message}, {"errno", error}};
    toHost_.bytes += toLine(Json{{"id", id_}, {"error", why}});
    toHost_.readEnded = true;
    toGuest_ = Half{.bytes = {}, .sent = 0, .readEnded = true, .writeEnded = true};
    guest_.reset();
    pump();
  }

  void pump() {
    bool alive = move(host_.get(), guest_.get(), toGuest_);
    alive = alive && move(guest_.get(), host_.get(), toHost_);
    if (!alive || (toGuest_.writeEnded && toHost_.writeEnded)) return end();
    watch(hostToken_, host_.get(), toGuest_, toHost_);
    if (guest_) watch(guestToken_, guest_.get(), toHost_, toGuest_);
  }

  /// False: one side is broken, and with it the whole.
  static bool move(int from, int to, Half& half) {
    bool moved = true;
    while (moved) {
      moved = false;
      if (half.wantsRead()) {
        std::array<char, kBuffer> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
        const ssize_t n = ::recv(from, piece.data(), piece.size(), 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n == 0) half.readEnded = true;
        if (n > 0) {
          half.bytes.append(piece.data(), static_cast<std::size_t>(n));
          moved = true;
        }
      }
      if (!half.empty()) {
        const ssize_t n = ::send(to, half.bytes.data() + half.sent, half.bytes.size() - half.sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n > 0) {
          half.sent += static_cast<std::size_t>(n);
          moved = true;
        }
        if (half.empty()) {
          half.bytes.clear();
          half.sent = 0;
        }
      }
    }
    if (half.readEnded && half.empty() && !half.writeEnded) {
      half.writeEnded = true;
      ::shutdown(to, SHUT_WR);
    }
    return true;
  }

  /// Watches one side for what the two directions need of it. A side that nothing is needed of is not watched at all:
  /// epoll would tell of its hang-up again and again.
  void watch(Loop::Token& token, int fd, const Half& fromIt, const Half& toIt) {
    std::uint32_t events = 0;
    if (fromIt.wantsRead()) events |= EPOLLIN;
    if (!toIt.empty()) events |= EPOLLOUT;
    if (token != 0 && events == 0) {
      loop_.unwatch(std::exchange(token, 0));
    } else if (token != 0) {
      loop_.change(token, events);
    } else if (events != 0) {
      token = loop_.watch(fd, events, [self = shared_from_this()](std::uint32_t) { self->pump(); });
    }
  }

  void end() {
    loop_.unwatch(std::exchange(hostToken_, 0));
    loop_.unwatch(std::exchange(guestToken_, 0));
    host_.reset();
    guest_.reset();
  }

  Loop& loop_;
  UniqueFd host_, guest_;
  std::uint64_t id_;
  std::uint16_t port_;
  int family_ = AF_INET;
  Half toGuest_, toHost_;
  Loop::Token hostToken_ = 0, guestToken_ = 0;
};

}  // namespace

void forward(Loop& loop, Connection::Raw host, std::uint64_t requestId, std::uint16_t port) {
  std::make_shared<Forward>(loop, std::move(host), requestId, port)->start();
}

}  // namespace bough::guest
