// See vsock_clients.h.
#include "native/vmm/virtio/vsock_clients.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace bough::vmm::vsock {

namespace {

constexpr std::string_view kWord = "CONNECT ";
/// "CONNECT 4294967295\n"
constexpr std::size_t kLongestLine = kWord.size() + 11;

std::optional<std::uint32_t> parse(std::string_view line) {
  if (!line.starts_with(kWord)) return std::nullopt;
  line.remove_prefix(kWord.size());
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), port);
  if (error != std::errc{} || end != line.data() + line.size()) return std::nullopt;
  return port;
}

}  // namespace

Clients::~Clients() {
  if (listener_) loop_->unwatch(listener_.get());
  for (const Silent& client : silent_) loop_->unwatch(client.socket.get());
}

Result<Done> Clients::attach(UniqueFd listener, EventLoop& loop) {
  loop_ = &loop;
  if (!listener) return Done{};
  const int flags = ::fcntl(listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listener.get(), F_SETFL, flags | O_NONBLOCK) < 0)
    return sysError(errno, "the vsock listener's descriptor");
  spare_.reset(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 3));
  BOUGH_TRY(loop.watch(listener.get(), EPOLLIN, [this](std::uint32_t) { accept(); }));
  listener_ = std::move(listener);
  return Done{};
}

void Clients::becomeChild() {
  silent_.clear();
  listener_.reset();
  spare_.reset();
}

void Clients::accept() {
  for (std::size_t turn = 0; turn < kMostSilent; turn++) {
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) {
      if (errno == EMFILE || errno == ENFILE) refuseOne();
      return;
    }
    if (silent_.size() >= kMostSilent) forget(silent_.begin());
    const auto added = silent_.insert(silent_.end(), {std::move(client), {}});
    if (!loop_->watch(added->socket.get(), EPOLLIN, [this, added](std::uint32_t) { hear(added); }))
      silent_.erase(added);
  }
}

void Clients::refuseOne() {
  spare_.reset();
  // Taken and closed at once: the client learns that it is refused.
  spare_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  spare_.reset();
  spare_.reset(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3));
}

void Clients::forget(std::list<Silent>::iterator client) {
  loop_->unwatch(client->socket.get());
  silent_.erase(client);
}

void Clients::hear(std::list<Silent>::iterator client) {
  // Looked at first, then taken up to the line's end, so that what follows the line stays where it is.
  std::array<char, kLongestLine> bytes{};
  const int fd = client->socket.get();
  const ssize_t seen = ::recv(fd, bytes.data(), bytes.size(), MSG_PEEK);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (seen <= 0) return forget(client);
  const std::string_view text(bytes.data(), static_cast<std::size_t>(seen));
  const std::size_t end = text.find('\n');
  const std::size_t mine = end == std::string_view::npos ? text.size() : end + 1;
  if (::recv(fd, bytes.data(), mine, 0) != static_cast<ssize_t>(mine)) return forget(client);
  client->line += text.substr(0, std::min(end, text.size()));
  if (client->line.size() >= kLongestLine) return forget(client);
  if (end == std::string_view::npos) return;
  const auto port = parse(client->line);
  if (!port) return forget(client);
  loop_->unwatch(fd);
  UniqueFd socket = std::move(client->socket);
  silent_.erase(client);
  connect_(std::move(socket), *port);
}

}  // namespace bough::vmm::vsock
