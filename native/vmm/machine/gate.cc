// See gate.h.
#include "native/vmm/machine/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace bough::vmm {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the kernel reads it as a plain word");

/// futex(2): sleeps while `word` is `value`. Private to the process: a forked child never shares one with its parent.
void sleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* timeout) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

void wakeAll(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void Gate::close() { epoch_.fetch_add(1, std::memory_order_acq_rel); }

void Gate::open() {
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  wakeAll(epoch_);
}

void Gate::restart() {
  epoch_ = 0;
  arrivals_ = 0;
  for (std::atomic<std::uint32_t>& each : came_) each = 0;
}

bool Gate::waitForAll(std::chrono::steady_clock::time_point deadline) {
  const std::uint32_t epoch = epoch_.load();
  for (;;) {
    const std::uint32_t arrivals = arrivals_.load();
    bool all = true;
    for (const std::atomic<std::uint32_t>& each : came_) {
      const std::uint32_t came = each.load();
      all = all && (came == epoch || came == kLeft);
    }
    if (all) return true;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    sleepWhile(arrivals_, arrivals, &timeout);
  }
}

void Gate::pass(unsigned thread) {
  for (std::uint32_t epoch = epoch_.load(); (epoch & 1) != 0; epoch = epoch_.load()) {
    // Again after a signal too: coming twice in one epoch is coming.
    came_[thread] = epoch;
    arrivals_.fetch_add(1);
    wakeAll(arrivals_);
    sleepWhile(epoch_, epoch, nullptr);
  }
}

void Gate::leave(unsigned thread) {
  came_[thread] = kLeft;
  arrivals_.fetch_add(1);
  wakeAll(arrivals_);
}

}  // namespace bough::vmm
