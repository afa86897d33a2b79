// One machine under test: a boughvm process, its control connection and its console. Used by all tests. A failed step
// throws std::runtime_error with what the machine said; the machine is ended when its Vm goes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "test/vm/harness/console.h"
#include "test/vm/harness/control.h"

namespace bough::vmtest {

struct VmOptions {
  std::vector<std::string> arguments;
  /// Called in the new process before boughvm begins: limits and the like.
  void (*before)() = nullptr;
};

class Vm {
 public:
  /// A process without a machine in it yet.
  explicit Vm(const VmOptions& options);
  Vm() : Vm(VmOptions{}) {}
  /// One that runs this guest (test/vm/guests) already, with `params` for `boot`.
  explicit Vm(const std::string& guest, Json params = Json::object(), const VmOptions& options = {});
  Vm(Vm&&) noexcept;
  Vm& operator=(Vm&&) noexcept;
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;
  ~Vm();

  /// A kernel given by its file; further descriptors follow kernel (0) and console (1).
  Answer boot(int kernel, Json params = Json::object(), std::vector<int> more = {});

  /// Made when it is first asked for.
  Control& control();
  /// Another connection to the same machine.
  Control connect() const { return Control(listener_.connect()); }
  Console& console() { return console_; }
  const std::string& name() const { return name_; }
  /// What boughvm wrote to stderr (the machine's and, since they inherit it, its children's).
  std::string log() const;

  Answer ask(const std::string& method, Json params = Json::object(), const std::vector<int>& fds = {});
  /// The result; throws if it did not work.
  Json must(const std::string& method, Json params = Json::object(), const std::vector<int>& fds = {});
  /// Types on the guest's serial port.
  void type(const std::string& characters);
  /// Types, and answers the next line that the guest writes.
  std::string command(const std::string& characters);
  std::string state();

  /// Children of one pause, running (or frozen: checkpoints).
  std::vector<Vm> fork(unsigned count, bool frozen = false, Json params = Json::object());
  Vm forkOne(bool frozen = false, Json params = Json::object());
  /// A fork that may fail.
  struct Forked {
    Answer answer;
    std::vector<Vm> children;
  };
  Forked tryFork(unsigned count, bool frozen = false, Json params = Json::object(),
                 std::vector<std::vector<int>> more = {});

  /// The host's number of the machine's process; none once it has ended.
  std::optional<pid_t> pid();
  bool alive();
  /// SIGKILL, and waits until it is gone.
  void kill();
  /// Ends the machine by its protocol and waits until it is gone.
  void end();
  /// The process was started by this one: waits for its end and answers its exit status.
  int exitStatus(Seconds deadline = kDeadline);

 private:
  struct Child {};
  explicit Vm(Child /*unused*/) {}
  void start(const VmOptions& options);
  void waitGone();

  std::string name_ = "machine";
  Listener listener_;
  Console console_;
  Console errors_;
  std::optional<Control> control_;
  /// Of a process that this one started: to wait for.
  pid_t started_ = 0;
  /// Of the machine's own process.
  UniqueFd pidfd_;
  std::optional<int> status_;
};

}  // namespace bough::vmtest
