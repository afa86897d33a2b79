// One client of the control socket: reads requests, answers them in order on a thread of its own, and passes events on
// once the client has subscribed. Used by Server.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "native/branchfs/store.h"
#include "native/common/unique_fd.h"

namespace bough {

class Connection {
 public:
  Connection(UniqueFd fd, Store& store);
  /// Ends the connection and waits for its threads.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Queues an event for a subscriber; never blocks. A client that does not read loses the connection.
  void event(const std::shared_ptr<const std::string>& line);
  /// True once the client has gone and nothing runs any more.
  bool over() const { return over_; }
  void hangUp();

 private:
  void serve();
  void tell();
  bool send(std::string_view bytes);

  UniqueFd fd_;
  Store& store_;
  std::mutex sendLock_;
  std::mutex eventLock_;
  std::condition_variable eventWake_;
  std::deque<std::shared_ptr<const std::string>> events_;
  bool ending_ = false;
  std::atomic<bool> subscribed_{false}, over_{false};
  std::thread teller_;
  std::thread server_;  // last: it uses everything above
};

}  // namespace bough
