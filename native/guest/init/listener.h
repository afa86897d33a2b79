// Where the host connects: vsock in a machine, a unix socket in tests. Used by server.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::guest {

inline constexpr std::uint32_t kVsockPort = 1024;

class Listener {
 public:
  virtual ~Listener() = default;
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// To be watched for EPOLLIN.
  virtual int fd() const = 0;
  /// The next connection, non-blocking; without a descriptor: nobody is there, or somebody who may not enter.
  virtual UniqueFd accept() = 0;
};

/// AF_VSOCK on all of this machine's addresses. Only the host (VMADDR_CID_HOST) is let in.
class VsockListener : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> listen(std::uint32_t port);
  explicit VsockListener(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }
  UniqueFd accept() override;

 private:
  UniqueFd fd_;
};

/// A unix socket that only its owner may open. A file that is in the way is replaced.
class UnixListener : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> listen(const std::string& path);
  explicit UnixListener(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }
  UniqueFd accept() override;

 private:
  UniqueFd fd_;
};

}  // namespace bough::guest
