// See control.h.
#include "test/vm/harness/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bough::vmtest {

namespace {

/// Of one message (the kernel's SCM_MAX_FD).
constexpr std::size_t kMostDescriptors = 253;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

[[noreturn]] void failErrno(const std::string& what) { fail(what + ": " + std::strerror(errno)); }

bool isReady(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) failErrno("poll");
  }
}

}  // namespace

Listener::Listener() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  // unix(7), "autobind": with nothing but the family the kernel finds a free abstract name.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof address.sun_family;
  if (!fd_ || ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) failErrno("bind");
  size = sizeof address;
  if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) failErrno("getsockname");
  address_.assign(reinterpret_cast<const char*>(&address), size);
  if (::listen(fd_.get(), 128) != 0) failErrno("listen");
}

UniqueFd Listener::connect() const {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(address_.size());
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(address_.data()), size) != 0) {
    failErrno("connect to the machine");
  }
  return socket;
}

UniqueFd Listener::accept(Seconds deadline) const {
  if (!isReady(fd_.get(), POLLIN, Clock::now() + deadline)) fail("nobody connected");
  UniqueFd socket(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) failErrno("accept");
  return socket;
}

Answer Control::ask(const std::string& method, Json params, const std::vector<int>& fds, Seconds deadline) {
  return wait(send(method, std::move(params), fds), deadline);
}

std::uint64_t Control::send(const std::string& method, Json params, const std::vector<int>& fds) {
  const std::uint64_t id = ++lastId_;
  const Json line{{"id", id}, {"method", method}, {"params", std::move(params)}, {"fds", fds.size()}};
  sendRaw(line.dump() + "\n", fds);
  return id;
}

void Control::sendRaw(const std::string& bytes, const std::vector<int>& fds) {
  std::size_t sent = 0;
  std::size_t given = 0;
  while (sent < bytes.size()) {
    const std::size_t count = std::min(kMostDescriptors, fds.size() - given);
    // A line with many descriptors goes in pieces, each with some of them and at least one byte.
    const bool last = given + count == fds.size();
    iovec data{const_cast<char*>(bytes.data()) + sent, last ? bytes.size() - sent : 1};
    std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (count > 0) {
      message.msg_control = space.data();
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(count * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data() + given, count * sizeof(int));
    }
    const ssize_t done = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) failErrno("send to the machine");
    sent += static_cast<std::size_t>(done);
    given += count;
  }
}

bool Control::receive(Clock::time_point deadline) {
  if (!isReady(socket_.get(), POLLIN, deadline)) fail("the machine did not answer in time");
  std::array<char, 65536> bytes{};
  std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> space{};
  iovec data{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> fds((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(header), fds.size() * sizeof(int));
    for (const int fd : fds) arrived_.emplace_back(fd);
  }
  partial_.append(bytes.data(), static_cast<std::size_t>(count));
  for (std::size_t end = 0; (end = partial_.find('\n')) != std::string::npos;) {
    Message next{Json::parse(partial_.substr(0, end)), {}};
    partial_.erase(0, end + 1);
    const std::size_t fds = next.line.value("fds", std::size_t{0});
    if (fds > arrived_.size()) fail("fewer descriptors came than the line says: " + next.line.dump());
    for (std::size_t i = 0; i < fds; i++) {
      next.fds.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
    }
    messages_.push_back(std::move(next));
  }
  return true;
}

Control::Message Control::next(Clock::time_point deadline) {
  while (messages_.empty()) {
    if (!receive(deadline)) fail("the machine closed the connection");
  }
  Message first = std::move(messages_.front());
  messages_.pop_front();
  return first;
}

Answer Control::wait(std::uint64_t id, Seconds deadline) {
  const auto end = Clock::now() + deadline;
  std::deque<Message> others;
  for (;;) {
    Message message = next(end);
    if (!message.line.contains("id") || message.line["id"] != id) {
      others.push_back(std::move(message));
      continue;
    }
    for (auto it = others.rbegin(); it != others.rend(); ++it) messages_.push_front(std::move(*it));
    Answer answer;
    answer.fds = std::move(message.fds);
    if (message.line.contains("error")) {
      const Json& error = message.line["error"];
      answer.code = error.value("code", "no code");
      answer.message = error.value("message", "");
      answer.status = error.value("status", 0);
    } else {
      answer.result = message.line["result"];
    }
    return answer;
  }
}

Json Control::event(const std::string& name, Seconds deadline) {
  const auto end = Clock::now() + deadline;
  for (;;) {
    const Message message = next(end);
    if (message.line.value("event", "") == name) return message.line;
  }
}

Json Control::readLine(Seconds deadline) { return next(Clock::now() + deadline).line; }

bool Control::closes(Seconds deadline) {
  try {
    while (receive(Clock::now() + deadline)) {
    }
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace bough::vmtest
