// The methods of docs/boughvm-protocol.md on one machine: what a boughvm process does. Used by main.cc.
//
//   service.cc       starts, hands out requests, the short methods
//   service_start.cc boot and load
//   service_fork.cc  fork, checkpoint, save: what makes processes, and what those become
//   shapes.cc        the JSON of answers
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "native/vmm/control/children.h"
#include "native/vmm/control/requests.h"
#include "native/vmm/control/server.h"
#include "native/vmm/control/signals.h"
#include "native/vmm/control/waits.h"
#include "native/vmm/jail/jail.h"
#include "native/vmm/machine/machine.h"

namespace bough::vmm {

struct ServiceOptions {
  std::string name = "machine";
  unsigned maxForks = 128;
  JailReport jail;
};

/// How a boughvm process ends (docs/boughvm-protocol.md).
enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kNameTaken = 3,
  kKvmMissing = 4,
  kKvmDenied = 5,
  kKvmUnusable = 6,
  kDamaged = 7,
  kJail = 8,
};

class Service {
 public:
  static Result<std::unique_ptr<Service>> start(EventLoop& loop, UniqueFd listener, std::unique_ptr<Kvm> kvm,
                                                ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Serves until the machine is killed. A forked child returns from here, too, when it is killed.
  ExitCode run();
  /// Whether this process was forked by another machine.
  bool forked() const { return forked_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct ForkPart {
    Child child;
    std::unique_ptr<PipeText> report;
    std::optional<std::uint64_t> startUs;
  };
  /// A fork of which not all children have reported.
  struct ForkJob {
    ConnectionId from = 0;
    Json id;
    Json pause;
    Clock::time_point start;
    std::vector<ForkPart> parts;
    std::unique_ptr<Alarm> deadline;
  };
  /// A frozen child that writes a saved file.
  struct SaveJob {
    ConnectionId from = 0;
    Json id;
    Json pause;
    Clock::time_point start;
    /// What Machine::fork told, read only if the child said nothing itself.
    UniqueFd machineReport;
    std::unique_ptr<PipeText> report;
  };

  Service(EventLoop& loop, std::unique_ptr<Kvm> kvm, ServiceOptions options);
  void handle(ConnectionId from, Request request);
  void finish(ExitCode code) { ended_ = code; }

  // Answered at once.
  Result<Json> hello(Request& request);
  Result<Json> boot(Request& request);
  Result<Json> load(Request& request);
  Result<Json> pause(Request& request);
  Result<Json> resume(Request& request);
  Result<Json> status(Request& request);
  Result<Json> metrics(Request& request);
  Result<Json> consoleInput(Request& request);
  Result<Json> kill(Request& request);
  // Answered when their children have reported.
  void fork(ConnectionId from, const Json& id, Result<ForkRequest> asked);
  void save(ConnectionId from, const Json& id, Result<SaveRequest> asked);

  Result<Done> needMachine() const;
  Result<Done> mayStart() const;
  void adoptMachine(std::unique_ptr<Machine> machine);
  UniqueFd connectVsock(std::uint32_t port);
  Result<Done> checkBehind(UniqueFd file);
  Json statusJson() const;
  Json lastPause() const;

  Result<Done> checkFork(ForkRequest& fork);
  Result<Done> checkLimit(std::size_t more) const;
  std::size_t inFlight() const;
  /// Forks those of `children` that are (not) to be frozen. `made` gets the parent's part; true in the child, which
  /// then is itself already.
  Result<bool> forkGroup(ForkRequest& fork, bool frozen, std::vector<ChildProcess>& made, Microseconds& took);
  void becomeChild(std::string name, UniqueFd control);
  void partReported(ForkJob* job, std::size_t index, const std::string& text);
  void finishFork(ForkJob* job, std::optional<Error> error);
  Result<Done> startFork(ConnectionId from, const Json& id, ForkRequest fork);
  Result<Done> startSave(ConnectionId from, const Json& id, SaveRequest save);
  void saveReported(SaveJob* job, const std::string& text);
  std::string freshName();

  EventLoop& loop_;
  ServiceOptions options_;
  std::unique_ptr<Kvm> kvm_;
  std::unique_ptr<Server> server_;
  Signals signals_;
  Children children_;
  std::unique_ptr<Machine> machine_;
  std::list<ForkJob> forks_;
  std::list<SaveJob> saves_;
  std::unique_ptr<PipeText> ramCheck_;
  std::uint64_t childNumber_ = 0;
  std::uint64_t exitsSeen_ = 0;
  Clock::time_point exitsSeenAt_ = Clock::now();
  bool forked_ = false;
  std::optional<ExitCode> ended_;
};

/// Makes log lines of this process begin with "boughvm[name]: ".
void nameLog(const std::string& name);

// JSON of answers (shapes.cc).
Json toJson(const PauseTimes& times);
Json toJson(const MachineConfig& config);
Json toJson(const JailReport& jail);
const char* word(MachineState state);

}  // namespace bough::vmm
