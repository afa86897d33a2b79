// The other end of a machine's file system for the guest `files`: answers every request with ENOSYS and remembers its
// number (linux/fuse.h). Used by virtio_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>

#include "native/common/unique_fd.h"

namespace bough::vmtest {

class FuseServer {
 public:
  FuseServer();
  FuseServer(const FuseServer&) = delete;
  FuseServer& operator=(const FuseServer&) = delete;
  /// The machine must have let go of its end, or it is taken away from it.
  ~FuseServer();

  /// The machine's end of the socket; it stays open here until letGo().
  int clientEnd() const { return client_.get(); }
  void letGo() { client_.reset(); }

  /// While held, requests are read and kept without an answer.
  void hold(bool held);

  std::uint64_t requests() const { return requests_; }
  /// Requests whose number had come before.
  std::uint64_t repeated() const { return repeated_; }

 private:
  void serve();
  void answer(std::uint64_t number) const;

  UniqueFd client_;
  UniqueFd socket_;
  UniqueFd wake_;
  std::atomic<bool> held_ = false;
  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> repeated_ = 0;
  std::thread thread_;
};

}  // namespace bough::vmtest
