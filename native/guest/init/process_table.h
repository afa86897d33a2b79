// All processes that the host started and that are not forgotten; collects them and every orphan of the machine. Used
// by the methods and by machine.cc.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/guest/init/process.h"

namespace bough::guest {

class ProcessTable {
 public:
  /// `ringBudget`: bytes that all rings together may take.
  ProcessTable(Loop& loop, std::size_t ringBudget) : loop_(loop), ringBudget_(ringBudget) {}

  /// Answers `Started`, or why the program cannot be started, when that is known.
  void start(StartRequest request, int cgroupProcs, const std::shared_ptr<Connection>& connection, const Reply& reply);
  Result<Process*> find(ProcessNumber number);
  Result<Json> forget(ProcessNumber number);
  Json list() const;
  std::size_t size() const { return processes_.size(); }

  /// A connection can take more output.
  void pump(const Connection* connection);
  /// A connection has ended: nobody listens there.
  void detach(const Connection* connection);
  bool isAttached(const Connection* connection) const;

  /// After SIGCHLD. Returns whether any child is left.
  bool collect();

 private:
  struct Asker {
    Reply reply;
    std::weak_ptr<Connection> connection;
    std::optional<std::uint64_t> window;
  };
  /// Forked, but exec has not answered yet.
  struct Starting {
    UniqueFd verdict;
    Loop::Token token = 0;
    std::vector<Asker> askers;
  };

  Result<Done> makeRoom(std::size_t ring);
  void settle(ProcessNumber number);
  void answerStarted(Process& process, const Asker& asker, bool existing);
  void remove(ProcessNumber number);

  Loop& loop_;
  std::size_t ringBudget_;
  std::size_t ringBytes_ = 0;
  ProcessNumber next_ = 1;
  std::map<ProcessNumber, std::unique_ptr<Process>> processes_;
  std::unordered_map<pid_t, ProcessNumber> byPid_;  // those that have not ended
  std::unordered_map<std::string, ProcessNumber> byKey_;
  std::unordered_map<ProcessNumber, Starting> starting_;
  std::deque<ProcessNumber> ended_;  // oldest first; may name some that are forgotten
};

}  // namespace bough::guest
