// See channel.h. Descriptors on stream sockets: unix(7). recvmsg never returns bytes from beyond the piece that brought
// descriptors, so what came with a read belongs to the line of the last byte of that read.
#include "native/vmm/control/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bough::vmm {
namespace {

/// SCM_MAX_FD: the kernel's limit for one message.
constexpr std::size_t kFdsAtOnce = 253;
constexpr std::size_t kPiece = 64 * 1024;
/// One client does not keep the loop from the others: the loop is level-triggered and comes back.
constexpr int kReadsAtOnce = 16;

struct alignas(cmsghdr) ControlBuffer {
  std::array<std::byte, CMSG_SPACE(kFdsAtOnce * sizeof(int))> bytes{};
};

void take(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Channel::Channel(UniqueFd socket) : socket_(std::move(socket)) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

Channel::Input Channel::receive(std::vector<IncomingLine>& lines) {
  std::array<char, kPiece> piece{};
  for (int reads = 0; reads < kReadsAtOnce; reads++) {
    ControlBuffer control;
    iovec into{piece.data(), piece.size()};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? Input::kOpen : Input::kClosed;
    std::vector<UniqueFd> fds;
    take(message, fds);
    if (n == 0) return Input::kClosed;

    std::string_view rest(piece.data(), static_cast<std::size_t>(n));
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const bool last = end == std::string_view::npos || end + 1 == rest.size();
      if (last) std::move(fds.begin(), fds.end(), std::back_inserter(partialFds_));
      if (partialFds_.size() > kMaxDescriptors) return Input::kTooBig;
      const std::string_view part = rest.substr(0, end);
      if (partial_.size() + part.size() > kMaxLine) return Input::kTooBig;
      partial_.append(part);
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
      if (!partial_.empty() || !partialFds_.empty()) {
        lines.push_back({std::exchange(partial_, {}), std::exchange(partialFds_, {})});
      }
    }
  }
  return Input::kOpen;
}

bool Channel::send(Outgoing message) {
  unsent_ += message.line.size();
  if (unsent_ > kMaxUnread) return false;
  outgoing_.push_back(std::move(message));
  return flush();
}

bool Channel::flush() {
  while (!outgoing_.empty()) {
    Outgoing& first = outgoing_.front();
    iovec from{first.line.data() + sent_, first.line.size() - sent_};
    msghdr message{};
    message.msg_iov = &from;
    message.msg_iovlen = 1;
    ControlBuffer control;
    const std::size_t count = std::min(first.fds.size(), kFdsAtOnce);
    if (count > 0) {
      // More descriptors than fit into one message: each further batch goes with one more byte of the line.
      if (first.fds.size() > count) from.iov_len = 1;
      message.msg_control = control.bytes.data();
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(count * sizeof(int));
      for (std::size_t i = 0; i < count; i++) {
        const int fd = first.fds[i].get();
        std::memcpy(CMSG_DATA(head) + i * sizeof(int), &fd, sizeof fd);
      }
    }
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    first.fds.erase(first.fds.begin(), first.fds.begin() + static_cast<std::ptrdiff_t>(count));
    sent_ += static_cast<std::size_t>(n);
    unsent_ -= static_cast<std::size_t>(n);
    if (sent_ == first.line.size()) {
      outgoing_.pop_front();
      sent_ = 0;
    }
  }
  return true;
}

}  // namespace bough::vmm
