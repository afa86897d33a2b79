// All that bough-init is, in one place: the loop, the processes, the freezer, the identity, how it came up, and the
// end. Made by main.cc, used by server.cc and the methods.
#pragma once

#include <cstdint>

#include "native/common/unique_fd.h"
#include "native/guest/init/boot.h"
#include "native/guest/init/freezer.h"
#include "native/guest/init/loop.h"
#include "native/guest/init/process_table.h"
#include "native/guest/init/renew.h"

namespace bough::guest {

class Machine {
 public:
  /// `signals`: a signalfd of SIGCHLD and of what asks pid 1 to end.
  Machine(Boot boot, UniqueFd signals);

  Loop& loop() { return loop_; }
  ProcessTable& processes() { return processes_; }
  Freezer& freezer() { return freezer_; }
  Identity& identity() { return identity_; }
  const Boot& boot() const { return boot_; }

  /// SIGTERM to all, SIGKILL after the grace, sync, reset. Begins once; `run` comes back when all have ended.
  void shutDown(std::uint64_t graceMs);
  bool isEnding() const { return ending_; }

  void run() { loop_.run(); }

 private:
  void onSignal();

  Loop loop_;
  Boot boot_;
  UniqueFd signals_;
  ProcessTable processes_;
  Freezer freezer_;
  Identity identity_;
  bool ending_ = false;
};

}  // namespace bough::guest
