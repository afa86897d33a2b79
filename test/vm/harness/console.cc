// See console.h.
#include "test/vm/harness/console.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace bough::vmtest {

struct Console::State {
  UniqueFd read;
  std::mutex lock;
  std::condition_variable changed;
  std::string text;
  bool ended = false;

  /// With `lock` held. What is in the pipe.
  void take() {
    std::array<char, 65536> bytes{};
    while (!ended) {
      const ssize_t count = ::read(read.get(), bytes.data(), bytes.size());
      if (count < 0) break;
      if (count == 0)
        ended = true;
      else
        text.append(bytes.data(), static_cast<std::size_t>(count));
    }
    changed.notify_all();
  }
};

namespace {

constexpr int kPipeSize = 1 << 20;

/// The thread that reads. Never ended: it belongs to the process.
class Reader {
 public:
  static Reader& get() {
    static Reader* reader = new Reader();
    return *reader;
  }

  void add(const std::shared_ptr<Console::State>& state) {
    const std::lock_guard lock(lock_);
    states_[state->read.get()] = state;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = state->read.get();
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event.data.fd, &event);
  }

  void remove(int fd) {
    const std::lock_guard lock(lock_);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    states_.erase(fd);
  }

 private:
  Reader() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    std::thread([this] { loop(); }).detach();
  }

  [[noreturn]] void loop() {
    for (;;) {
      std::array<epoll_event, 64> events{};
      const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; i++) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        std::shared_ptr<Console::State> state;
        {
          const std::lock_guard lock(lock_);
          if (const auto found = states_.find(fd); found != states_.end()) state = found->second;
        }
        if (!state) continue;
        const std::lock_guard lock(state->lock);
        state->take();
        if (state->ended) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
      }
    }
  }

  UniqueFd epoll_;
  std::mutex lock_;
  std::map<int, std::shared_ptr<Console::State>> states_;
};

[[noreturn]] void missed(const std::string& what, const std::string& text) {
  constexpr std::size_t kShown = 400;
  throw std::runtime_error("the guest did not write " + what + "; it wrote " + std::to_string(text.size()) +
                           " bytes, at the end: " + text.substr(text.size() - std::min(kShown, text.size())));
}

}  // namespace

Console::Console() : state_(std::make_shared<State>()) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  state_->read.reset(fds[0]);
  write_.reset(fds[1]);
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  // As much as this user may have; the thread empties it anyway.
  ::fcntl(fds[1], F_SETPIPE_SZ, kPipeSize);
  Reader::get().add(state_);
}

Console& Console::operator=(Console&& other) noexcept {
  if (state_) Reader::get().remove(state_->read.get());
  state_ = std::move(other.state_);
  write_ = std::move(other.write_);
  return *this;
}

Console::~Console() {
  if (state_) Reader::get().remove(state_->read.get());
}

std::string Console::text(std::size_t from) {
  const std::lock_guard lock(state_->lock);
  state_->take();
  return state_->text.substr(std::min(from, state_->text.size()));
}

std::size_t Console::size() {
  const std::lock_guard lock(state_->lock);
  state_->take();
  return state_->text.size();
}

std::size_t Console::waitFor(std::string_view wanted, std::size_t from, Seconds deadline) {
  const auto end = Clock::now() + deadline;
  std::unique_lock lock(state_->lock);
  for (;;) {
    const std::size_t at = state_->text.find(wanted, from);
    if (at != std::string::npos) return at + wanted.size();
    if (state_->ended || state_->changed.wait_until(lock, end) == std::cv_status::timeout) {
      missed("\"" + std::string(wanted) + "\"", state_->text);
    }
  }
}

void Console::waitForMore(std::size_t size, Seconds deadline) {
  const auto end = Clock::now() + deadline;
  std::unique_lock lock(state_->lock);
  while (state_->text.size() <= size) {
    if (state_->ended || state_->changed.wait_until(lock, end) == std::cv_status::timeout) {
      missed("more than " + std::to_string(size) + " bytes", state_->text);
    }
  }
}

std::string Console::line(std::size_t& from, Seconds deadline) {
  const std::size_t start = from;
  from = waitFor("\n", start, deadline);
  return text(start).substr(0, from - start - 1);
}

void Console::waitForEnd(Seconds deadline) {
  const auto end = Clock::now() + deadline;
  std::unique_lock lock(state_->lock);
  while (!state_->ended) {
    if (state_->changed.wait_until(lock, end) == std::cv_status::timeout) {
      throw std::runtime_error("a machine that should be gone still has its console open");
    }
  }
}

}  // namespace bough::vmtest
