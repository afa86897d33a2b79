// See process.h: from the host into the pipe or terminal.
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "native/guest/init/process.h"

namespace bough::guest {
namespace {

constexpr std::size_t kMaxWaiting = 1 << 20;
constexpr std::size_t kMaxWaiters = 1024;

}  // namespace

void Process::input(InputRequest request, const Reply& reply) {
  if (!request_.input) return reply(Error{EINVAL, "E_STATE", "The process was started without input."});
  if (request_.terminal && request.end) {
    return reply(Error{EINVAL, "E_STATE", "A terminal has no end of input; send its end character (4)."});
  }
  if (request.at > received_) {
    return reply(Error{EINVAL, "E_GAP", "Only " + std::to_string(received_) + " bytes of input have been received."});
  }
  const std::uint64_t again = std::min<std::uint64_t>(received_ - request.at, request.data.size());
  request.data.erase(0, static_cast<std::size_t>(again));
  if (inputWaiters_.size() >= kMaxWaiters) return reply(Error{EAGAIN, "E_LIMIT", "Too many requests for input wait."});
  if (!request.data.empty()) {
    if (!inputFd_ || inputEnds_) return reply(Error{EPIPE, "E_STATE", "The process does not take input any more."});
    if (waitingBytes_ + request.data.size() > kMaxWaiting) {
      return reply(Error{EAGAIN, "E_LIMIT", "More than 1 MiB of input waits for this process; wait for the answers."});
    }
    received_ += request.data.size();
    waitingBytes_ += request.data.size();
    waiting_.push_back(std::move(request.data));
  }
  if (request.end) inputEnds_ = true;
  inputWaiters_.push_back(InputWaiter{.until = received_, .reply = reply});
  writeInput();
}

void Process::writeInput() {
  while (inputFd_ && !waiting_.empty()) {
    const std::string& front = waiting_.front();
    const ssize_t n = ::write(inputFd_.get(), front.data() + frontSent_, front.size() - frontSent_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      // EPIPE: its reader is gone. What waits can never go in.
      closeInput();
      break;
    }
    frontSent_ += static_cast<std::size_t>(n);
    written_ += static_cast<std::uint64_t>(n);
    waitingBytes_ -= static_cast<std::size_t>(n);
    if (frontSent_ == front.size()) {
      waiting_.pop_front();
      frontSent_ = 0;
    }
  }
  if (inputEnds_ && waiting_.empty()) closeInput();
  std::vector<Reply> done;
  std::erase_if(inputWaiters_, [&](const InputWaiter& waiter) {
    if (waiter.until > written_) return false;
    done.push_back(waiter.reply);
    return true;
  });
  for (const Reply& reply : done) reply(Json{{"received", received_}});
  if (!inputFd_) {
    const Error gone{EPIPE, "E_STATE", "The process does not take input any more."};
    for (const InputWaiter& waiter : std::exchange(inputWaiters_, {})) waiter.reply(gone);
    return;
  }
  if (waiting_.empty()) {
    loop_.unwatch(inputToken_);
    inputToken_ = 0;
  } else if (inputToken_ == 0) {
    inputToken_ = loop_.watch(inputFd_.get(), EPOLLOUT, [this](std::uint32_t) { writeInput(); });
  }
}

void Process::closeInput() {
  loop_.unwatch(inputToken_);
  inputToken_ = 0;
  inputFd_.reset();
  waiting_.clear();
  waitingBytes_ = frontSent_ = 0;
}

}  // namespace bough::guest
