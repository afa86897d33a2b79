// A client of boughvm's control socket (docs/boughvm-protocol.md): lines of JSON with descriptors. Used by Vm and by
// the tests that speak to a machine wrongly.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "native/common/unique_fd.h"

namespace bough::vmtest {

using Json = nlohmann::json;
using Seconds = std::chrono::seconds;
using Clock = std::chrono::steady_clock;

/// Generous: the host may be emulated, and busy.
constexpr Seconds kDeadline{120};

/// A listening unix stream socket without a name in the file system.
class Listener {
 public:
  Listener();
  int fd() const { return fd_.get(); }
  /// A new connection to it. Throws if nobody listens any more.
  UniqueFd connect() const;
  /// The next connection that somebody made to it.
  UniqueFd accept(Seconds deadline = kDeadline) const;
  /// What is handed over is handed over: from now on only the other process listens.
  void letGo() { fd_.reset(); }

 private:
  UniqueFd fd_;
  std::string address_;
};

struct Answer {
  Json result;
  /// Empty: it worked.
  std::string code;
  std::string message;
  int status = 0;
  std::vector<UniqueFd> fds;

  bool ok() const { return code.empty(); }
  /// For failure messages.
  std::string text() const { return ok() ? result.dump() : code + ": " + message; }
};

/// Throws std::runtime_error if the machine does not answer in time, closes the connection, or answers nonsense.
class Control {
 public:
  explicit Control(UniqueFd socket) : socket_(std::move(socket)) {}

  Answer ask(const std::string& method, Json params = Json::object(), const std::vector<int>& fds = {},
             Seconds deadline = kDeadline);
  /// Sends without waiting: the id for wait().
  std::uint64_t send(const std::string& method, Json params = Json::object(), const std::vector<int>& fds = {});
  Answer wait(std::uint64_t id, Seconds deadline = kDeadline);
  /// The next event of this name; others that came before it are dropped.
  Json event(const std::string& name, Seconds deadline = kDeadline);

  /// Any bytes, with descriptors.
  void sendRaw(const std::string& bytes, const std::vector<int>& fds = {});
  /// The next line of any kind.
  Json readLine(Seconds deadline = kDeadline);
  /// True once the machine has closed the connection.
  bool closes(Seconds deadline = kDeadline);

 private:
  struct Message {
    Json line;
    std::vector<UniqueFd> fds;
  };
  /// False at the end of the connection; throws at the deadline.
  bool receive(Clock::time_point deadline);
  Message next(Clock::time_point deadline);

  UniqueFd socket_;
  std::string partial_;
  std::deque<UniqueFd> arrived_;
  std::deque<Message> messages_;
  std::uint64_t lastId_ = 0;
};

}  // namespace bough::vmtest
