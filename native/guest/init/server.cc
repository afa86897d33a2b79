// See server.h.
#include "native/guest/init/server.h"

#include <sys/epoll.h>

#include <utility>

#include "native/guest/init/methods.h"

namespace bough::guest {
namespace {

constexpr std::size_t kMaxConnections = 64;

}  // namespace

Server::Server(Machine& machine, std::unique_ptr<Listener> listener)
    : machine_(machine), listener_(std::move(listener)) {
  machine_.loop().watch(listener_->fd(), EPOLLIN, [this](std::uint32_t) { accept(); });
}

void Server::accept() {
  UniqueFd fd = listener_->accept();
  if (!fd || connections_.size() >= kMaxConnections) return;
  const auto connection = std::make_shared<Connection>(
      machine_.loop(), std::move(fd),
      Connection::Events{
          .request = [this](const std::shared_ptr<Connection>& from,
                            Request request) { handle(machine_, from, std::move(request)); },
          .drained = [this](const std::shared_ptr<Connection>& from) { machine_.processes().pump(from.get()); },
          .closed =
              [this](const std::shared_ptr<Connection>& from) {
                machine_.processes().detach(from.get());
                connections_.erase(from);
              }});
  connections_.insert(connection);
  connection->open();
}

}  // namespace bough::guest
