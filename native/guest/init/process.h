// One process that the host started: its pipes or terminal, the ring of its output, the input that waits, who listens.
// Used by process_table.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/guest/init/connection.h"
#include "native/guest/init/loop.h"
#include "native/guest/init/requests.h"
#include "native/guest/init/ring.h"
#include "native/guest/init/spawn.h"

namespace bough::guest {

class Process {
 public:
  Process(Loop& loop, ProcessNumber number, StartRequest request, Spawned spawned, std::uint64_t startedMs);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  ProcessNumber number() const { return number_; }
  pid_t pid() const { return pid_; }
  const StartRequest& request() const { return request_; }
  bool hasEnded() const { return waitStatus_.has_value(); }
  std::size_t ringBytes() const { return ring_.capacity(); }

  Result<Json> attach(const std::shared_ptr<Connection>& connection, const AttachRequest& request);
  void detach(const Connection* connection);
  bool isAttached(const Connection* connection) const;
  void ack(const Connection* connection, std::uint64_t to);
  /// Answers through `reply`, at once or when the bytes have gone in.
  void input(InputRequest request, const Reply& reply);
  Result<Json> resize(WindowSize size);
  Result<Json> signal(const SignalRequest& request);
  void wait(const Reply& reply);

  /// pid 1 has collected it (wait(2)'s status).
  void ended(int waitStatus);
  /// Output that can go out goes out.
  void pump();
  /// Who still waits for something learns that it will not come.
  void abandon(const Error& why);

  Json started(bool existing) const;
  Json describe() const;

 private:
  struct Source {
    UniqueFd fd;
    Stream stream = Stream::Out;
    Loop::Token token = 0;
  };
  struct Attachment {
    std::weak_ptr<Connection> connection;
    std::uint64_t next = 0, acked = 0, window = 0;
    bool toldExit = false, toldEnd = false;
  };
  struct InputWaiter {
    std::uint64_t until;
    Reply reply;
  };

  void addSource(UniqueFd fd, Stream stream);
  void watchSources();
  /// Reads once; false when there is nothing now.
  bool read(Source& source, std::size_t most);
  void drainSources();
  bool outputEnded() const { return sources_.empty(); }
  void writeInput();
  void closeInput();
  void releaseAcked();
  void pump(Attachment& attachment);
  Json exitJson() const;

  Loop& loop_;
  ProcessNumber number_;
  pid_t pid_;
  StartRequest request_;
  std::uint64_t startedMs_;
  OutputRing ring_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Attachment> attachments_;

  UniqueFd inputFd_;  // of a terminal: a duplicate of its master
  Loop::Token inputToken_ = 0;
  std::deque<std::string> waiting_;
  std::size_t waitingBytes_ = 0, frontSent_ = 0;
  std::uint64_t received_ = 0, written_ = 0;
  bool inputEnds_ = false;
  std::vector<InputWaiter> inputWaiters_;

  std::optional<int> waitStatus_;
  std::uint64_t exitTo_ = 0;
  std::vector<Reply> waiters_;
};

}  // namespace bough::guest
