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

  UniqueFd device_;
  Dispatcher& dispatcher_;
  const unsigned maxThreads_;

  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> idle_{0};
  std::atomic<unsigned> count_{0};

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<pthread_t> workers_;  // running
  bool initAnswered_ = false;
};

}  // namespace bough::fuse
