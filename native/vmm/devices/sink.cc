// See sink.h.
#include "native/vmm/devices/sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace bough::vmm {

namespace {

/// So much at once is worth a system call; less waits for the end of a line or for the loop's next turn.
constexpr std::size_t kWorthWriting = 512;

}  // namespace

Result<Done> Sink::attach(UniqueFd out, EventLoop& loop) {
  close();
  out_ = std::move(out);
  loop_ = &loop;
  if (!out_) return Done{};
  const int flags = ::fcntl(out_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(out_.get(), F_SETFL, flags | O_NONBLOCK) < 0)
    return sysError(errno, "the console's descriptor");
  auto watched = loop.watch(out_.get(), 0, [this](std::uint32_t events) {
    // Nobody reads any more.
    if (events & (EPOLLHUP | EPOLLERR)) return close();
    flush();
  });
  if (!watched && watched.error().errnum != EPERM) return watched.error();
  watched_ = watched.ok();
  return Done{};
}

void Sink::becomeChild() {
  // The loop has no watches any more.
  watched_ = waiting_ = false;
  out_.reset();
  kept_.clear();
  lost_ = 0;
}

void Sink::close() {
  if (watched_) loop_->unwatch(out_.get());
  becomeChild();
}

void Sink::write(std::span<const std::byte> bytes) {
  if (!out_ || bytes.empty()) return;
  const std::size_t room = kMostKept - kept_.size();
  const std::size_t taken = std::min(room, bytes.size());
  kept_.append(reinterpret_cast<const char*>(bytes.data()), taken);
  lost_ += bytes.size() - taken;
  if (!watched_ || bytes.back() == std::byte{'\n'} || kept_.size() >= kWorthWriting) flush();
  // The rest of a line goes out when the loop comes round.
  else
    wait(true);
}

void Sink::flush() {
  while (out_ && !kept_.empty()) {
    const ssize_t written = ::write(out_.get(), kept_.data(), kept_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return wait(true);
    if (written <= 0) return close();
    kept_.erase(0, static_cast<std::size_t>(written));
    if (kept_.empty() && lost_ > 0)
      kept_ =
          "\n[" + std::to_string(std::exchange(lost_, 0)) + " bytes of console output were lost: nobody read them]\n";
  }
  wait(false);
}

void Sink::wait(bool forRoom) {
  if (!watched_ || waiting_ == forRoom) return;
  waiting_ = forRoom;
  loop_->change(out_.get(), forRoom ? std::uint32_t{EPOLLOUT} : 0);
}

}  // namespace bough::vmm
