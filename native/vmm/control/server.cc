// See server.h.
#include "native/vmm/control/server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <variant>

#include "native/common/log.h"

namespace bough::vmm {
namespace {

constexpr std::size_t kMaxConnections = 256;

bool mayConnect(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

int socketOption(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

Result<sockaddr_un> addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ENAMETOOLONG, "E_BAD_REQUEST",
                 "the socket's path " + path + " is too long: give one of at most " +
                     std::to_string(sizeof address.sun_path - 1) + " bytes"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

}  // namespace

Result<UniqueFd> listenAt(const std::string& path) {
  BOUGH_ASSIGN(const sockaddr_un address, addressOf(path));
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return sysError(errno, "the socket's folder " + folder);
  {
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(probe.get(), where, sizeof address) == 0) {
      return Error{EADDRINUSE, "E_NAME_TAKEN",
                   "another machine answers on " + path + ": end it, or give this one another socket"};
    }
    // Only what nobody can answer on any more is taken away.
    if (errno == ECONNREFUSED) ::unlink(path.c_str());
  }
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return sysError(errno, "socket");
  if (::bind(listener.get(), where, sizeof address) != 0 || ::listen(listener.get(), SOMAXCONN) != 0) {
    return sysError(errno, "the control socket " + path);
  }
  return listener;
}

Result<Done> checkListener(int fd) {
  if (socketOption(fd, SO_DOMAIN) == AF_UNIX && socketOption(fd, SO_TYPE) == SOCK_STREAM &&
      socketOption(fd, SO_ACCEPTCONN) == 1) {
    return Done{};
  }
  return Error{EINVAL, "E_DESCRIPTORS", "A control or vsock descriptor must be a listening unix stream socket."};
}

Result<std::unique_ptr<Server>> Server::start(EventLoop& loop, UniqueFd listener, Handler handler) {
  std::unique_ptr<Server> server(new Server(loop, std::move(handler)));
  BOUGH_TRY(server->serve(std::move(listener)));
  return server;
}

Result<Done> Server::serve(UniqueFd listener) {
  listener_ = std::move(listener);
  spare_.reset(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0));
  // One that the caller made may block, and somebody else may take the connection that was told of.
  ::fcntl(listener_.get(), F_SETFL, ::fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
  return loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
}

Server::~Server() {
  if (listener_) loop_.unwatch(listener_.get());
  for (auto& [id, connection] : connections_) loop_.unwatch(connection.channel.fd());
}

void Server::accept() {
  // SOCK_NONBLOCK is not the listener's: it may be shared with who made it, and somebody else may take the connection
  // first.
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    if (errno != EMFILE && errno != ENFILE) return;
    spare_.reset();
    ::close(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    spare_.reset(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0));
    return;
  }
  if (!mayConnect(fd.get()) || connections_.size() >= kMaxConnections) return;
  const ConnectionId id = nextConnection_++;
  const int number = fd.get();
  connections_.try_emplace(id, std::move(fd));
  if (!loop_.watch(number, EPOLLIN, [this, id](std::uint32_t events) { ready(id, events); })) connections_.erase(id);
}

void Server::ready(ConnectionId id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if ((events & EPOLLOUT) != 0 && !connection.channel.flush()) return drop(id);
  watchOutput(id, connection);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;

  std::vector<IncomingLine> lines;
  const Channel::Input input = connection.channel.receive(lines);
  for (IncomingLine& line : lines) waiting_.push_back({id, std::move(line)});
  if (input == Channel::Input::kTooBig) {
    waiting_.push_back({id, {}});  // after the answers to what came before
  } else if (input == Channel::Input::kClosed) {
    // What was asked before is still carried out; a fork whose asker has gone ends its children.
    drop(id);
  }
  runWaiting();
}

void Server::runWaiting() {
  if (handling_) return;
  const unsigned generation = generation_;
  handling_ = true;
  while (!waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.line.text.empty() && next.line.fds.empty()) {
      fail(next.from, Json(),
           Error{EMSGSIZE, "E_TOO_BIG",
                 "A line may have 1 MiB and 2048 descriptors: send less at once. The connection is closed."});
      drop(next.from);
      continue;
    }
    auto parsed = parseRequest(next.line.text, std::move(next.line.fds));
    if (auto* bad = std::get_if<BadLine>(&parsed)) {
      fail(next.from, bad->id, bad->error);
      continue;
    }
    handler_(next.from, std::move(std::get<Request>(parsed)));
    if (generation_ != generation) return;  // this is the child: `handling_` and the queue are its own
  }
  handling_ = false;
}

bool Server::answer(ConnectionId to, const Json& id, Json result, std::vector<UniqueFd> fds) {
  return send(to, answerLine(id, std::move(result), std::move(fds)));
}

bool Server::fail(ConnectionId to, const Json& id, const Error& error) { return send(to, errorLine(id, error)); }

bool Server::send(ConnectionId to, Outgoing message) {
  const auto found = connections_.find(to);
  if (found == connections_.end()) return false;
  if (!found->second.channel.send(std::move(message))) {
    drop(to);
    return false;
  }
  watchOutput(to, found->second);
  return true;
}

void Server::watchOutput(ConnectionId, Connection& connection) {
  const bool wanted = connection.channel.hasUnsent();
  if (wanted == connection.watchesOutput) return;
  connection.watchesOutput = wanted;
  loop_.change(connection.channel.fd(), wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Server::drop(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  loop_.unwatch(found->second.channel.fd());
  connections_.erase(found);
}

void Server::subscribe(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found != connections_.end() && found->second.subscribed == 0) found->second.subscribed = ++subscriptions_;
}

void Server::event(const Json& event) {
  std::vector<ConnectionId> to;
  for (const auto& [id, connection] : connections_) {
    if (connection.subscribed != 0) to.push_back(id);
  }
  for (const ConnectionId id : to) send(id, eventLine(event));
}

bool Server::eventToFirst(const Json& event, UniqueFd fd) {
  ConnectionId first = 0;
  std::uint64_t order = UINT64_MAX;
  for (const auto& [id, connection] : connections_) {
    if (connection.subscribed != 0 && connection.subscribed < order) {
      first = id;
      order = connection.subscribed;
    }
  }
  if (first == 0) return false;
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(fd));
  return send(first, eventLine(event, std::move(fds)));
}

Result<Done> Server::becomeChild(UniqueFd listener) {
  generation_++;
  handling_ = false;
  waiting_.clear();
  connections_.clear();
  listener_.reset();
  spare_.reset();
  if (!listener) return Done{};
  return serve(std::move(listener));
}

}  // namespace bough::vmm
