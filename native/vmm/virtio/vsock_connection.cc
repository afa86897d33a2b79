// See vsock_connection.h.
#include "native/vmm/virtio/vsock_connection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace bough::vmm::vsock {

namespace {

/// send(2), gathered, without waiting. 0: no room now.
ssize_t sendNow(int fd, iovec* parts, std::size_t count) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return -1;
  }
}

}  // namespace

Connection::Connection(Ports ports, UniqueFd socket, Origin origin)
    : ports_(ports),
      socket_(std::move(socket)),
      open_(origin == Origin::kGuest),
      requestDue_(origin == Origin::kHost),
      responseDue_(origin == Origin::kGuest) {}

void Connection::credit(const Header& header) {
  guestBuffer_ = header.bufferSize;
  guestForwarded_ = header.forwarded;
  if (guestRoom() > 0) creditRequestSent_ = false;
}

std::uint32_t Connection::guestRoom() const {
  // Wrapping, 5.10.6.3. What makes no sense is no room.
  const std::uint32_t inFlight = sent_ - guestForwarded_;
  return inFlight < guestBuffer_ ? guestBuffer_ - inFlight : 0;
}

bool Connection::accepted() {
  open_ = true;
  std::string line = "OK " + std::to_string(ports_.host) + "\n";
  iovec part{line.data(), line.size()};
  return sendNow(fd(), &part, 1) == static_cast<ssize_t>(line.size());
}

bool Connection::receive(const DescriptorChain& chain, std::uint32_t size) {
  if (!open_ || (guestFlags_ & kNoSend) || kept_.size() + size > kWindow) return false;
  received_ += size;
  if (discarding_) return true;
  std::size_t done = 0;
  if (kept_.empty()) {
    std::vector<iovec> parts = chain.readable(sizeof(Header), size);
    const ssize_t sent = sendNow(fd(), parts.data(), parts.size());
    if (sent < 0) {
      peerGone();
      return true;
    }
    done = static_cast<std::size_t>(sent);
  }
  if (done < size) {
    const std::size_t before = kept_.size();
    kept_.resize(before + size - done);
    chain.read(sizeof(Header) + done, std::as_writable_bytes(std::span(kept_).subspan(before)));
  }
  return true;
}

void Connection::flush() {
  std::size_t done = 0;
  while (done < kept_.size()) {
    iovec part{kept_.data() + done, kept_.size() - done};
    const ssize_t sent = sendNow(fd(), &part, 1);
    if (sent < 0) return peerGone();
    if (sent == 0) break;
    done += static_cast<std::size_t>(sent);
  }
  kept_.erase(0, done);
  if (kept_.empty() && (guestFlags_ & kNoSend)) endWriting();
}

void Connection::peerGone() {
  discarding_ = true;
  kept_.clear();
  hostFlags_ |= kNoReceive;
}

bool Connection::shutdown(std::uint32_t flags) {
  guestFlags_ |= flags & kNeither;
  if (guestFlags_ == kNeither) return true;
  if (guestFlags_ & kNoReceive) ::shutdown(fd(), SHUT_RD);
  if ((guestFlags_ & kNoSend) && kept_.empty()) endWriting();
  return false;
}

void Connection::endWriting() { ::shutdown(fd(), SHUT_WR); }

std::uint32_t Connection::interest() const {
  std::uint32_t events = kept_.empty() ? 0 : std::uint32_t{EPOLLOUT};
  // Before the guest has accepted, a client's bytes wait in its socket; that it went away shows as EPOLLHUP.
  if (open_ && !readable_ && !hostEnded_ && !guestGone_ && !(guestFlags_ & kNoReceive)) events |= EPOLLIN;
  return events;
}

bool Connection::hasPacket() const {
  if (requestDue_ || responseDue_) return true;
  if (!open_) return false;
  return (canRead() && (guestRoom() > 0 || !creditRequestSent_)) || hostFlags_ != hostFlagsTold_ || creditDue();
}

void Connection::hostEnded() {
  hostEnded_ = true;
  readable_ = false;
  hostFlags_ |= kNoSend;
  // Ended for good, or for one direction only?
  pollfd state{fd(), 0, 0};
  if (::poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR))) peerGone();
}

std::optional<Connection::Packet> Connection::nextPacket(const DescriptorChain& chain, std::vector<iovec>& scratch) {
  if (std::exchange(requestDue_, false)) return Packet{kRequest};
  if (std::exchange(responseDue_, false)) return Packet{kResponse};
  if (!open_) return std::nullopt;
  if (canRead() && guestRoom() > 0 && chain.writableSize() > sizeof(Header)) {
    const std::size_t wanted = std::min<std::size_t>(guestRoom(), chain.writableSize() - sizeof(Header));
    scratch.clear();
    chain.appendWritable(scratch, sizeof(Header), wanted);
    const ssize_t got = ::readv(fd(), scratch.data(), static_cast<int>(std::min<std::size_t>(scratch.size(), IOV_MAX)));
    if (got > 0) {
      // Less than was asked for: there is no more, and the loop says when there is.
      if (static_cast<std::size_t>(got) < wanted) readable_ = false;
      sent_ += static_cast<std::uint32_t>(got);
      return Packet{kData, 0, static_cast<std::uint32_t>(got)};
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
      readable_ = false;
    else
      hostEnded();
  }
  if (hostFlags_ != hostFlagsTold_) {
    hostFlagsTold_ = hostFlags_;
    return Packet{kShutdown, hostFlags_};
  }
  if (creditDue()) {
    creditAsked_ = false;
    return Packet{kCreditUpdate};
  }
  if (canRead() && guestRoom() == 0 && !std::exchange(creditRequestSent_, true)) return Packet{kCreditRequest};
  return std::nullopt;
}

void Connection::describe(Header& header) {
  forwardedTold_ = forwarded();
  header.bufferSize = kWindow;
  header.forwarded = forwardedTold_;
}

}  // namespace bough::vmm::vsock
