// See waits.h.
#include "native/vmm/control/waits.h"

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace bough::vmm {
namespace {

constexpr std::size_t kLongest = 64 * 1024;

}  // namespace

Result<std::unique_ptr<PipeText>> PipeText::read(EventLoop& loop, UniqueFd pipe,
                                                 std::function<void(std::string)> done) {
  std::unique_ptr<PipeText> made(new PipeText(loop, std::move(pipe), std::move(done)));
  PipeText* self = made.get();
  BOUGH_TRY(loop.watch(self->pipe_.get(), EPOLLIN, [self](std::uint32_t) { self->ready(); }));
  return made;
}

PipeText::~PipeText() {
  if (pipe_) loop_.unwatch(pipe_.get());
}

void PipeText::ready() {
  std::array<char, 4096> piece{};
  const ssize_t n = ::read(pipe_.get(), piece.data(), piece.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n > 0) {
    if (text_.size() < kLongest) text_.append(piece.data(), static_cast<std::size_t>(n));
    return;
  }
  loop_.unwatch(pipe_.get());
  pipe_.reset();
  const auto done = std::move(done_);
  done(std::move(text_));
}

Result<std::unique_ptr<Alarm>> Alarm::in(EventLoop& loop, std::chrono::seconds time, std::function<void()> ring) {
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return sysError(errno, "timerfd_create");
  itimerspec when{};
  when.it_value.tv_sec = time.count();
  if (::timerfd_settime(timer.get(), 0, &when, nullptr) != 0) return sysError(errno, "timerfd_settime");
  const int fd = timer.get();
  std::unique_ptr<Alarm> made(new Alarm(loop, std::move(timer)));
  BOUGH_TRY(loop.watch(fd, EPOLLIN, [&loop, fd, ring = std::move(ring)](std::uint32_t) {
    loop.unwatch(fd);
    ring();
  }));
  return made;
}

Alarm::~Alarm() { loop_.unwatch(timer_.get()); }

Result<Pipe> Pipe::make() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return sysError(errno, "pipe2");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace bough::vmm
