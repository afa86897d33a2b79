// The worker threads on /dev/fuse: each reads a request, has the dispatcher handle it and writes the answer. Workers
// grow on demand, so that one slow copy does not hold up the others. Used by Mount.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "native/branchfs/fuse/dispatcher.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::fuse {

class Session {
 public:
  Session(UniqueFd device, Dispatcher& dispatcher, unsigned maxThreads);
  ~Session() { stop(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Starts the first worker and waits until INIT was answered. EPROTO if the two sides cannot agree, ETIMEDOUT if the
  /// kernel did not ask.
  Result<> start();
  /// Takes the workers out of the kernel, lets requests in flight end, joins all and closes the device, which ends the
  /// connection if nothing else did.
  void stop();
  /// False once the kernel ended the connection (unmounted, aborted) or stop was called.
  bool alive() const { return !ended_.load(std::memory_order_acquire); }

  int device() const { return device_.get(); }

 private:
  void grow();
  void work(int device);
  /// False when the connection has ended.
  bool serve(int device, std::span<std::byte> request, std::span<std::byte> answer);
  /// Sees to it that somebody reads, before this worker is gone for long.
  void handOver();
  /// Waits until this worker is to read.
  void park();

  UniqueFd device_;
  Dispatcher& dispatcher_;
  const unsigned maxThreads_;

  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> reading_{0};             // workers in read(2)
  std::atomic<std::uint64_t> started_{0};   // requests
  std::atomic<std::uint64_t> finished_{0};  // requests
  std::atomic<bool> dormant_{false};        // the watching follower sleeps until there is something to watch

  std::mutex lock_;
  std::condition_variable changed_;  // workers_, initAnswered_, ended_
  std::condition_variable parking_;  // calls_, dormant_, stopping_
  std::vector<pthread_t> workers_;   // running
  unsigned parked_ = 0;
  unsigned calls_ = 0;  // followers that are to read
  bool watched_ = false;
  bool initAnswered_ = false;
};

}  // namespace bough::fuse
