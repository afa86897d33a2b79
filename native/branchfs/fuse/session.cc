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

// The watching follower looks this often whether the reader is stuck, and goes to sleep itself after so many looks at
// nothing.
constexpr auto kLook = std::chrono::milliseconds(2);
constexpr int kLooksUntilDormant = 100;

// Requests that are known to take longer than a hand-over. Others may (a first write copies), which the watch finds
// out.
bool takesLong(std::uint32_t opcode, std::size_t requestLength, std::span<const std::byte> request) {
  constexpr std::size_t kBig = 64 * 1024;
  switch (opcode) {
    case FUSE_WRITE:
      return requestLength >= kBig;
    case FUSE_READ: {
      fuse_read_in in;
      if (requestLength < sizeof(fuse_in_header) + sizeof(in)) return false;
      std::memcpy(&in, request.data() + sizeof(fuse_in_header), sizeof(in));
      return in.size >= kBig;
    }
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_SYNCFS:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE:
    case kOpCopyFileRange64:
      return true;
    default:
      return false;
  }
}

}  // namespace

Session::Session(UniqueFd device, Dispatcher& dispatcher, unsigned maxThreads)
    : device_(std::move(device)), dispatcher_(dispatcher), maxThreads_(std::max(1u, maxThreads)) {}

Result<> Session::start() {
  grow();
  std::unique_lock guard(lock_);
  if (workers_.empty()) return sys(EAGAIN);
  // INIT comes by itself right after the mount; the wait is for a machine that is very busy.
  if (!changed_.wait_for(guard, std::chrono::seconds(60), [&] { return initAnswered_ || ended_.load(); }))
    return sys(ETIMEDOUT);
  if (!dispatcher_.agreed()) return sys(EPROTO);
  return Done{};
}

void Session::grow() {
  std::lock_guard guard(lock_);
  if (stopping_.load() || workers_.size() >= maxThreads_) return;
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
    if (reading_.load(std::memory_order_relaxed) > 0) {
      park();
      continue;
    }
    if (serve(device, {request.get(), kRequestBytes}, {answer.get(), kAnswerBytes})) continue;
    std::lock_guard guard(lock_);
    ended_.store(true, std::memory_order_release);
    // The parked ones must see it, too.
    stopping_.store(true, std::memory_order_release);
    changed_.notify_all();
    parking_.notify_all();
    return;
  }
}

bool Session::serve(int device, std::span<std::byte> request, std::span<std::byte> answer) {
  reading_.fetch_add(1, std::memory_order_relaxed);
  const ssize_t got = ::read(device, request.data(), request.size());
  reading_.fetch_sub(1, std::memory_order_relaxed);
  if (got < 0) {
    // ENOENT: the request was taken back before we had it. EINTR: stop wants us to look.
    return errno == EINTR || errno == ENOENT || errno == EAGAIN;
  }
  const auto size = static_cast<std::size_t>(got);
  fuse_in_header header{};
  if (size >= sizeof(header)) std::memcpy(&header, request.data(), sizeof(header));

  // The first request after INIT brings the follower that watches; from then on it is woken when it slept.
  if (started_.fetch_add(1) == 1) grow();
  if (dormant_.load()) {
    std::lock_guard guard(lock_);
    dormant_.store(false);
    parking_.notify_all();
  }
  if (takesLong(header.opcode, size, request)) handOver();

  const std::size_t length = dispatcher_.handle(request.first(size), answer);
  if (length > 0) {
    // ENOENT: nobody waits any longer. Other errors mean that the connection has ended, which the next read tells.
    while (::write(device, answer.data(), length) < 0 && errno == EINTR) {
    }
  }
  finished_.fetch_add(1);
  if (header.opcode == FUSE_INIT) {
    std::lock_guard guard(lock_);
    initAnswered_ = true;
    changed_.notify_all();
  }
  return true;
}

void Session::handOver() {
  if (reading_.load(std::memory_order_relaxed) > 0) return;
  {
    std::lock_guard guard(lock_);
    if (parked_ > calls_) {
      ++calls_;
      parking_.notify_one();
      return;
    }
  }
  grow();
}

void Session::park() {
  std::unique_lock guard(lock_);
  ++parked_;
  // One of the parked workers watches: it looks whether requests end, and reads itself when they do not.
  bool watching = false;
  std::uint64_t seen = 0;
  int quietLooks = 0;
  while (!stopping_.load()) {
    if (calls_ > 0) {
      --calls_;
      break;
    }
    if (!watching && !watched_) {
      watching = watched_ = true;
      seen = finished_.load();
    }
    if (!watching) {
      parking_.wait(guard);
      continue;
    }
    if (quietLooks > kLooksUntilDormant) {
      // Either the next request sees that we are dormant, or we see that it has started.
      dormant_.store(true);
      if (started_.load() == finished_.load()) parking_.wait(guard);
      dormant_.store(false);
      quietLooks = 0;
      continue;
    }
    if (parking_.wait_for(guard, kLook) == std::cv_status::no_timeout) continue;
    const std::uint64_t now = finished_.load();
    const bool stuck = now == seen && started_.load() != now && reading_.load() == 0;
    if (stuck) break;
    quietLooks = now == seen ? quietLooks + 1 : 0;
    seen = now;
  }
  if (watching) watched_ = false;
  if (!watched_) parking_.notify_one();  // somebody else watches from now on
  --parked_;
  const bool lastFollower = parked_ == 0;
  guard.unlock();
  if (lastFollower) grow();  // so that there is somebody to watch this one
}

void Session::stop() {
  std::unique_lock guard(lock_);
  stopping_.store(true, std::memory_order_release);
  parking_.notify_all();
  // A signal that arrives just before a worker enters read(2) is lost, so it is sent until all have left.
  while (!workers_.empty()) {
    for (pthread_t worker : workers_) pthread_kill(worker, wakeSignal());
    changed_.wait_for(guard, std::chrono::milliseconds(5));
  }
  ended_.store(true, std::memory_order_release);
  device_.reset();
}

}  // namespace bough::fuse
