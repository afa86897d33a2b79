// See connection.h.
#include "native/branchfs/control/connection.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "native/branchfs/control/methods.h"

namespace bough {
namespace {

constexpr std::size_t kMaxLine = std::size_t{16} << 20;
constexpr std::size_t kMaxEvents = 10000;
constexpr std::size_t kPiece = 64 * 1024;

}  // namespace

Connection::Connection(UniqueFd fd, Store& store) : fd_(std::move(fd)), store_(store) {
  server_ = std::thread([this] { serve(); });
}

Connection::~Connection() {
  hangUp();
  if (server_.joinable()) server_.join();
}

void Connection::hangUp() { ::shutdown(fd_.get(), SHUT_RDWR); }

void Connection::serve() {
  std::string buffer;
  std::size_t looked = 0;  // no newline before
  bool open = true;
  while (open) {
    const std::size_t had = buffer.size();
    buffer.resize(had + kPiece);
    const ssize_t n = ::recv(fd_.get(), buffer.data() + had, kPiece, 0);
    buffer.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    std::size_t start = 0;
    for (std::size_t end = buffer.find('\n', looked); open && end != std::string::npos;
         end = buffer.find('\n', start)) {
      const std::string_view line = std::string_view(buffer).substr(start, end - start);
      start = end + 1;
      if (line.empty()) continue;
      const Answer reply = answer(store_, line);
      open = send(reply.line);
      if (reply.subscribed && !subscribed_.exchange(true)) teller_ = std::thread([this] { tell(); });
    }
    buffer.erase(0, start);
    looked = buffer.size();
    if (buffer.size() > kMaxLine) break;
  }
  hangUp();
  {
    const std::lock_guard guard(eventLock_);
    ending_ = true;
  }
  eventWake_.notify_all();
  if (teller_.joinable()) teller_.join();
  over_ = true;
}

void Connection::event(const std::shared_ptr<const std::string>& line) {
  if (!subscribed_) return;
  {
    const std::lock_guard guard(eventLock_);
    if (ending_) return;
    if (events_.size() >= kMaxEvents) {
      hangUp();
      return;
    }
    events_.push_back(line);
  }
  eventWake_.notify_one();
}

void Connection::tell() {
  std::unique_lock wait(eventLock_);
  while (true) {
    eventWake_.wait(wait, [this] { return ending_ || !events_.empty(); });
    if (ending_) return;
    const std::shared_ptr<const std::string> line = std::move(events_.front());
    events_.pop_front();
    wait.unlock();
    if (!send(*line)) hangUp();
    wait.lock();
  }
}

bool Connection::send(std::string_view bytes) {
  const std::lock_guard guard(sendLock_);
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace bough
