// See server.h.
#include "native/branchfs/control/server.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "native/branchfs/control/methods.h"
#include "native/common/log.h"

namespace bough {
namespace {

bool mayConnect(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

Error socketError(int code, const std::string& path) {
  return Error{code, "E_IO", "The control socket " + path + " cannot be had: " + std::strerror(code) + "."};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(Store& store, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return socketError(ENAMETOOLONG, path);
  std::memcpy(address.sun_path, path.c_str(), path.size());

  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return socketError(errno, path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return socketError(errno, path);
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(fd.get(), raw, sizeof address) != 0) {
    if (errno != EADDRINUSE) return socketError(errno, path);
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), raw, sizeof address) == 0 || errno == EAGAIN) {
      return Error{EBUSY, "E_STORE_BUSY",
                   "Somebody answers on the socket " + path + " already. Use that one, or another path."};
    }
    ::unlink(path.c_str());
    if (::bind(fd.get(), raw, sizeof address) != 0) return socketError(errno, path);
  }
  ::chmod(path.c_str(), 0600);
  if (::listen(fd.get(), 64) != 0) return socketError(errno, path);
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake) return socketError(errno, path);
  return std::unique_ptr<Server>(new Server(store, path, std::move(fd), std::move(wake)));  // NOLINT: private
}

Server::Server(Store& store, std::string path, UniqueFd listener, UniqueFd wake)
    : store_(store), path_(std::move(path)), listener_(std::move(listener)), wake_(std::move(wake)) {
  store_.onEvent([this](const StoreEvent& event) {
    const auto line = std::make_shared<const std::string>(eventLine(event));
    const std::lock_guard guard(lock_);
    for (const auto& connection : connections_) connection->event(line);
  });
  acceptor_ = std::thread([this] { accept(); });
}

Server::~Server() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);  // an eventfd at 0 takes it
  acceptor_.join();
  store_.onEvent(nullptr);
  std::vector<std::unique_ptr<Connection>> last;
  {
    const std::lock_guard guard(lock_);
    last.swap(connections_);
  }
  for (const auto& connection : last) connection->hangUp();
  last.clear();
  ::unlink(path_.c_str());
}

void Server::accept() {
  std::array<pollfd, 2> polled{pollfd{listener_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  while (true) {
    if (::poll(polled.data(), polled.size(), 1000) < 0 && errno != EINTR) {
      logLine(std::string("the control socket fails: ") + std::strerror(errno));
      return;
    }
    if (polled[1].revents != 0) return;
    reap();
    if (polled[0].revents == 0) continue;
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd || !mayConnect(fd.get())) continue;
    const std::lock_guard guard(lock_);
    connections_.push_back(std::make_unique<Connection>(std::move(fd), store_));
  }
}

void Server::reap() {
  std::vector<std::unique_ptr<Connection>> gone;
  const std::lock_guard guard(lock_);
  for (auto& connection : connections_) {
    if (connection->over()) gone.push_back(std::move(connection));
  }
  std::erase(connections_, nullptr);
}

}  // namespace bough
