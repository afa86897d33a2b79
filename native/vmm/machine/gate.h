// Where vCPU threads wait while the machine is paused. Used by the machine (closes, opens) and the vCPU threads (stop
// here).
//
// Built on futex(2) and nothing else, because a fork happens while threads wait in it: the child has none of them, and
// a mutex or condition variable would remember them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace bough::vmm {

class Gate {
 public:
  explicit Gate(unsigned threads) : came_(threads) {}

  // The machine's side.

  /// From now on threads stop here. Odd numbers of `epoch_` mean closed.
  void close();
  /// Waits until each thread has come (or has ended) since the last close(). False at the deadline.
  bool waitForAll(std::chrono::steady_clock::time_point deadline);
  void open();
  /// In a forked child: no thread is here, and the gate is open.
  void restart();

  // A thread's side.

  bool closed() const { return (epoch_.load(std::memory_order_acquire) & 1) != 0; }
  /// Stops while the gate is closed.
  void pass(unsigned thread);
  /// The thread will not come again.
  void leave(unsigned thread);

 private:
  static constexpr std::uint32_t kLeft = UINT32_MAX;

  std::atomic<std::uint32_t> epoch_{0};
  /// Grows with each arrival; what waitForAll() sleeps on.
  std::atomic<std::uint32_t> arrivals_{0};
  /// The epoch in which each thread came last.
  std::vector<std::atomic<std::uint32_t>> came_;
};

}  // namespace bough::vmm
