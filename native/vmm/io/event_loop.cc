// See event_loop.h.
#include "native/vmm/io/event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

namespace bough::vmm {

Result<std::unique_ptr<EventLoop>> EventLoop::make() {
  std::unique_ptr<EventLoop> loop(new EventLoop());
  ::signal(SIGPIPE, SIG_IGN);
  BOUGH_TRY(loop->open());
  return loop;
}

Result<Done> EventLoop::open() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return sysError(errno, "epoll_create1");
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return sysError(errno, "eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) return sysError(errno, "epoll_ctl");
  return Done{};
}

Result<Done> EventLoop::restart() {
  generation_++;
  handlers_.clear();
  epoll_.reset();
  wake_.reset();
  return open();
}

Result<Done> EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return sysError(errno, "epoll_ctl");
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  return Done{};
}

void EventLoop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::unwatch(int fd) {
  if (handlers_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then a wake-up is pending anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::runOnce(int timeoutMs) {
  std::array<epoll_event, 32> ready{};
  const unsigned generation = generation_;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), timeoutMs);
  for (int i = 0; i < count; i++) {
    const epoll_event& event = ready.at(static_cast<std::size_t>(i));
    if (event.data.fd == wake_.get()) {
      std::uint64_t calls = 0;
      if (::read(wake_.get(), &calls, sizeof calls) > 0 && woken_) woken_();
    } else if (const auto found = handlers_.find(event.data.fd); found != handlers_.end()) {
      const std::shared_ptr<Handler> handler = found->second;
      (*handler)(event.events);
    }
    // A handler forked and this is the child: what is left in `ready` is the parent's.
    if (generation_ != generation) return;
  }
}

}  // namespace bough::vmm
