// One connection of the host: lines in, answers and events out, both bounded. Used by server.cc; methods answer through
// Reply, processes send their output through `send`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/guest/init/framing.h"
#include "native/guest/init/json.h"
#include "native/guest/init/loop.h"
#include "native/guest/init/request.h"

namespace bough::guest {

class Connection;

/// Answers one request, now or later, once. Does nothing when the connection has ended meanwhile.
class Reply {
 public:
  Reply(const std::shared_ptr<Connection>& connection, std::optional<std::uint64_t> id);
  void operator()(const Result<Json>& result) const;
  bool expired() const { return connection_.expired(); }

 private:
  std::weak_ptr<Connection> connection_;
  std::optional<std::uint64_t> id_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Events {
    std::function<void(const std::shared_ptr<Connection>&, Request)> request;
    /// What was sent has gone out: there is room for more output.
    std::function<void(const std::shared_ptr<Connection>&)> drained;
    std::function<void(const std::shared_ptr<Connection>&)> closed;
  };

  Connection(Loop& loop, UniqueFd fd, Events events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins to read.
  void open();
  void close();
  bool isOpen() const { return static_cast<bool>(fd_); }

  void send(std::string line);
  void answer(std::optional<std::uint64_t> id, const Result<Json>& result);
  /// Output waits while this is false, so that one slow reader does not fill the memory.
  bool wantsMore() const { return isOpen() && queued() < kHigh; }
  /// Requests whose answers are still to come.
  std::size_t pending() const { return pending_; }

  struct Raw {
    UniqueFd fd;
    std::string received, unsent;
  };
  /// Ends this connection as one of lines; its descriptor goes on as a stream of bytes.
  Raw takeOver();

 private:
  static constexpr std::size_t kHigh = 256 * 1024;         // output stops
  static constexpr std::size_t kStopReading = 512 * 1024;  // answers nobody reads: no more requests are taken
  static constexpr std::size_t kMaxPending = 4096;

  std::size_t queued() const { return out_.size() - sent_; }
  void ready(std::uint32_t events);
  void read(bool over);
  void takeLines();
  void write();
  void rewatch();
  bool settled() const { return queued() == 0 && pending_ == 0 && !paused_; }
  bool reading() const { return queued() < kStopReading && pending_ < kMaxPending; }

  Loop& loop_;
  UniqueFd fd_;
  Events events_;
  Loop::Token token_ = 0;
  std::uint32_t watched_ = 0;
  LineReader lines_;
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t pending_ = 0;
  bool taking_ = false;
  bool paused_ = false;  // there are whole lines that were not taken
  bool ended_ = false;   // the host sends no more
};

}  // namespace bough::guest
