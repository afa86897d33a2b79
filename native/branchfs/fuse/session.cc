// The worker threads on /dev/fuse; see session.h.
#include "native/branchfs/fuse/session.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <system_error>
#include <thread>

namespace bough::fuse {
namespace {

// A signal whose only use is to make read(2) on /dev/fuse answer EINTR. Its handler does nothing.
int wakeSignal() {
  static const int number = [] {
    const int signal = SIGRTMIN + 1;
    struct sigaction action{};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
    return signal;
  }();
  return number;
}

// A worker's own channel to the same connection: requests and answers of different workers then do not meet on one
// lock. Where the kernel does not give one, all share the first.
UniqueFd cloneDevice(int device) {
  UniqueFd clone(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  auto source = static_cast<std::uint32_t>(device);
  if (!clone || ::ioctl(clone.get(), FUSE_DEV_IOC_CLONE, &source) != 0) return UniqueFd();
  return clone;
}

}  // namespace

Session::Session(UniqueFd device, Dispatcher& dispatcher, unsigned maxThreads)
    : device_(std::move(device)), dispatcher_(dispatcher), maxThreads_(std::max(1u, maxThreads)) {}

Result<> Session::start() {
  grow();
  std::unique_lock guard(lock_);
  if (count_.load() == 0) return sys(EAGAIN);
  // INIT comes by itself right after the mount; the wait is for a machine that is very busy.
  if (!changed_.wait_for(guard, std::chrono::seconds(60), [&] { return initAnswered_ || ended_.load(); }))
    return sys(ETIMEDOUT);
  if (!dispatcher_.agreed()) return sys(EPROTO);
  return Done{};
}

void Session::grow() {
  std::lock_guard guard(lock_);
  if (stopping_.load() || count_.load() >= maxThreads_) return;
  wakeSignal();
  auto body = [this] {
    ::prctl(PR_SET_NAME, "bough-fuse");
    sigset_t all, wake;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    sigemptyset(&wake);
    sigaddset(&wake, wakeSignal());
    pthread_sigmask(SIG_UNBLOCK, &wake, nullptr);
    {
      UniqueFd own = cloneDevice(device_.get());
      work(own ? own.get() : device_.get());
    }
    std::lock_guard leaving(lock_);
    std::erase_if(workers_, [](pthread_t each) { return pthread_equal(each, pthread_self()) != 0; });
    changed_.notify_all();
  };
  try {
    std::thread thread(body);
    ++count_;
    workers_.push_back(thread.native_handle());
    // Nobody joins it: stop waits until the list is empty, and a worker's last act is to leave the list.
    thread.detach();
  } catch (const std::system_error&) {
    // No more threads on this machine: those that run go on.
  }
}

void Session::work(int device) {
  auto request = std::make_unique_for_overwrite<std::byte[]>(kRequestBytes);
  auto answer = std::make_unique_for_overwrite<std::byte[]>(kAnswerBytes);
  while (!stopping_.load(std::memory_order_acquire)) {
    if (serve(device, {request.get(), kRequestBytes}, {answer.get(), kAnswerBytes})) continue;
    std::lock_guard guard(lock_);
    ended_.store(true, std::memory_order_release);
    changed_.notify_all();
    return;
  }
}

bool Session::serve(int device, std::span<std::byte> request, std::span<std::byte> answer) {
  idle_.fetch_add(1, std::memory_order_relaxed);
  const ssize_t got = ::read(device, request.data(), request.size());
  const int left = idle_.fetch_sub(1, std::memory_order_relaxed) - 1;
  if (got < 0) {
    // ENOENT: the request was taken back before we had it. EINTR: stop wants us to look.
    return errno == EINTR || errno == ENOENT || errno == EAGAIN;
  }
  // While this one works somebody must be there for the next request.
  if (left == 0 && count_.load(std::memory_order_relaxed) < maxThreads_) grow();

  const std::size_t length = dispatcher_.handle(request.first(static_cast<std::size_t>(got)), answer);
  if (length > 0) {
    // ENOENT: nobody waits any longer. Other errors mean that the connection has ended, which the next read tells.
    while (::write(device, answer.data(), length) < 0 && errno == EINTR) {
    }
  }
  fuse_in_header header;
  std::memcpy(&header, request.data(), sizeof(header));
  if (header.opcode == FUSE_INIT) {
    std::lock_guard guard(lock_);
    initAnswered_ = true;
    changed_.notify_all();
  }
  return true;
}

void Session::stop() {
  std::unique_lock guard(lock_);
  stopping_.store(true, std::memory_order_release);
  // A signal that arrives just before a worker enters read(2) is lost, so it is sent until all have left.
  while (!workers_.empty()) {
    for (pthread_t worker : workers_) pthread_kill(worker, wakeSignal());
    changed_.wait_for(guard, std::chrono::milliseconds(5));
  }
  ended_.store(true, std::memory_order_release);
  device_.reset();
}

}  // namespace bough::fuse
