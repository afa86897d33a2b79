// The control socket: lets in only the same user and root (SO_PEERCRED), keeps the connections, hands each request to
// who carries it out, one after another, and brings answers and events back. Used by main.cc and Service.
//
// All of it runs on the loop's thread. Carrying out a request may run the loop (a pause waits for devices): requests
// that come meanwhile wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/control/channel.h"
#include "native/vmm/control/message.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm {

/// A listening unix stream socket at `path`; its folder is made with mode 0700 if it is not there. A socket that a dead
/// process left is replaced. Errors: E_NAME_TAKEN (somebody answers on it), E_IO.
Result<UniqueFd> listenAt(const std::string& path);
/// Takes over `fd` if it is a listening unix stream socket. Errors: E_DESCRIPTORS.
Result<Done> checkListener(int fd);

/// A connection, for an answer that comes later: it may have gone meanwhile. In a forked child all of them are gone.
using ConnectionId = std::uint64_t;

class Server {
 public:
  /// Carries out one request; answers with answer() or fail(), now or later.
  using Handler = std::function<void(ConnectionId, Request)>;

  /// `loop` outlives the server.
  static Result<std::unique_ptr<Server>> start(EventLoop& loop, UniqueFd listener, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// False: the connection has gone. The connection may be gone afterwards.
  bool answer(ConnectionId to, const Json& id, Json result, std::vector<UniqueFd> fds = {});
  bool fail(ConnectionId to, const Json& id, const Error& error);
  bool living(ConnectionId id) const { return connections_.contains(id); }

  void subscribe(ConnectionId id);
  /// To every subscriber.
  void event(const Json& event);
  /// To the connection that subscribed first and still lives. False: there is none, and the descriptor is closed.
  bool eventToFirst(const Json& event, UniqueFd fd);

  /// In a forked child, after the loop was restarted: closes (and does not shut down) the parent's connections and
  /// listener, forgets waiting requests, and serves `listener`, or nobody if there is none.
  Result<Done> becomeChild(UniqueFd listener);

 private:
  struct Connection {
    explicit Connection(UniqueFd fd) : channel(std::move(fd)) {}
    Channel channel;
    std::uint64_t subscribed = 0;  // order of subscription, from 1
    bool watchesOutput = false;
  };
  struct Waiting {
    ConnectionId from = 0;
    IncomingLine line;
  };

  Server(EventLoop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}
  Result<Done> serve(UniqueFd listener);
  void accept();
  void ready(ConnectionId id, std::uint32_t events);
  void runWaiting();
  bool send(ConnectionId to, Outgoing message);
  void watchOutput(ConnectionId id, Connection& connection);
  void drop(ConnectionId id);

  EventLoop& loop_;
  Handler handler_;
  UniqueFd listener_;
  /// Given up for a moment when there is no other descriptor left, to turn a connection away instead of leaving it
  /// waiting.
  UniqueFd spare_;
  std::map<ConnectionId, Connection> connections_;
  std::deque<Waiting> waiting_;
  ConnectionId nextConnection_ = 1;
  std::uint64_t subscriptions_ = 0;
  bool handling_ = false;
  /// Counts becomeChild(): what runs further down the stack then belongs to the parent.
  unsigned generation_ = 0;
};

}  // namespace bough::vmm
