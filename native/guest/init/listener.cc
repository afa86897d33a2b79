// See listener.h.
#include "native/guest/init/listener.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
// After sys/socket.h, which it needs.
#include <linux/vm_sockets.h>

#include <cstring>
#include <utility>

namespace bough::guest {
namespace {

constexpr int kBacklog = 64;

UniqueFd openSocket(int family) { return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

Result<std::unique_ptr<Listener>> VsockListener::listen(std::uint32_t port) {
  UniqueFd fd = openSocket(AF_VSOCK);
  if (!fd) return sysError(errno, "A vsock socket cannot be made");
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = port;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return sysError(errno, "vsock port " + std::to_string(port) + " cannot be listened on");
  }
  return std::unique_ptr<Listener>(std::make_unique<VsockListener>(std::move(fd)));
}

UniqueFd VsockListener::accept() {
  sockaddr_vm peer{};
  socklen_t size = sizeof peer;
  UniqueFd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd && peer.svm_cid != VMADDR_CID_HOST) fd.reset();
  return fd;
}

Result<std::unique_ptr<Listener>> UnixListener::listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return sysError(ENAMETOOLONG, path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd = openSocket(AF_UNIX);
  if (!fd) return sysError(errno, "A unix socket cannot be made");
  ::unlink(path.c_str());
  const mode_t before = ::umask(0177);
  const bool bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ::umask(before);
  if (!bound) return sysError(error, path);
  if (::listen(fd.get(), kBacklog) != 0) return sysError(errno, path);
  return std::unique_ptr<Listener>(std::make_unique<UnixListener>(std::move(fd)));
}

UniqueFd UnixListener::accept() {
  return UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace bough::guest
