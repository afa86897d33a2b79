// See connection.h.
#include "native/guest/init/connection.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace bough::guest {

Reply::Reply(const std::shared_ptr<Connection>& connection, std::optional<std::uint64_t> id)
    : connection_(connection), id_(id) {}

void Reply::operator()(const Result<Json>& result) const {
  if (const auto connection = connection_.lock()) connection->answer(id_, result);
}

Connection::Connection(Loop& loop, UniqueFd fd, Events events)
    : loop_(loop), fd_(std::move(fd)), events_(std::move(events)) {}

Connection::~Connection() { loop_.unwatch(token_); }

void Connection::open() {
  watched_ = EPOLLIN;
  token_ = loop_.watch(fd_.get(), watched_, [this](std::uint32_t events) { ready(events); });
  if (token_ == 0) close();
}

void Connection::close() {
  if (!fd_) return;
  loop_.unwatch(token_);
  fd_.reset();
  // Not at once: a caller of this one may be in the middle of it.
  loop_.defer([self = shared_from_this()] { self->events_.closed(self); });
}

void Connection::ready(std::uint32_t events) {
  const auto self = shared_from_this();
  const bool over = (events & (EPOLLHUP | EPOLLERR)) != 0;  // in both directions: nobody reads answers any more
  if (over && (events & EPOLLIN) == 0) return close();
  if ((events & EPOLLOUT) != 0) write();
  if (isOpen() && (events & EPOLLIN) != 0) read(over);
}

void Connection::read(bool over) {
  std::array<char, 64 * 1024> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t n = ::recv(fd_.get(), piece.data(), piece.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    // A host that has only shut down its writing half gets what it has asked for; a reset ends everything.
    ended_ = true;
    if (n < 0 || over || settled()) return close();
    return rewatch();
  }
  lines_.feed({piece.data(), static_cast<std::size_t>(n)});
  takeLines();
}

void Connection::takeLines() {
  if (taking_) return;  // an answer that came at once has called `send`
  taking_ = true;
  const auto self = shared_from_this();
  paused_ = false;
  while (isOpen()) {
    if (!reading()) {
      paused_ = true;
      break;
    }
    const auto line = lines_.next();
    if (!line) break;
    auto request = parseRequest(*line);
    if (!request) {
      send(toLine(
          Json{{"id", nullptr}, {"error", {{"code", request.error().code}, {"message", request.error().message}}}}));
      continue;
    }
    if (request->id) pending_++;
    events_.request(self, std::move(*request));
  }
  taking_ = false;
  if (isOpen() && lines_.tooLong()) {
    send(toLine(Json{
        {"id", nullptr},
        {"error", {{"code", "E_TOO_BIG"}, {"message", "A line is longer than 256 KiB; the connection is closed."}}}}));
    if (isOpen()) close();
  }
  if (isOpen()) rewatch();
}

void Connection::answer(std::optional<std::uint64_t> id, const Result<Json>& result) {
  if (!id) return;
  if (pending_ > 0) pending_--;
  if (result) {
    send(toLine(Json{{"id", *id}, {"result", *result}}));
    return;
  }
  const Error& error = result.error();
  Json json{{"code", error.code.empty() ? "E_IO" : error.code}, {"message", error.message}};
  if (error.errnum != 0) json["errno"] = error.errnum;
  send(toLine(Json{{"id", *id}, {"error", std::move(json)}}));
}

void Connection::send(std::string line) {
  if (!isOpen()) return;
  if (queued() == 0) {
    out_ = std::move(line);
    sent_ = 0;
  } else {
    out_ += line;
  }
  write();
}

void Connection::write() {
  while (queued() > 0) {
    const ssize_t n = ::send(fd_.get(), out_.data() + sent_, queued(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return close();
    sent_ += static_cast<std::size_t>(n);
  }
  if (queued() == 0) {
    out_.clear();
    sent_ = 0;
    if (ended_ && settled()) return close();
  } else if (sent_ >= kHigh) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  rewatch();
}

void Connection::rewatch() {
  std::uint32_t wanted = 0;
  if (!ended_ && reading()) wanted |= EPOLLIN;
  if (queued() > 0) wanted |= EPOLLOUT;
  const bool drained = (watched_ & EPOLLOUT) != 0 && (wanted & EPOLLOUT) == 0;
  if (wanted != watched_) loop_.change(token_, wanted);
  watched_ = wanted;
  const bool again = paused_ && reading();
  if (!drained && !again) return;
  paused_ = false;
  loop_.defer([weak = weak_from_this(), again] {
    const auto self = weak.lock();
    if (!self || !self->isOpen()) return;
    self->events_.drained(self);
    if (again && self->isOpen()) self->takeLines();  // lines that came before the pause
  });
}

Connection::Raw Connection::takeOver() {
  loop_.unwatch(token_);
  Raw raw{.fd = std::move(fd_), .received = lines_.takeRest(), .unsent = out_.substr(sent_)};
  out_.clear();
  sent_ = 0;
  loop_.defer([self = shared_from_this()] { self->events_.closed(self); });
  return raw;
}

}  // namespace bough::guest
