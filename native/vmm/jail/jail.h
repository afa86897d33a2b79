// Locks this process in, once it holds all the descriptors it needs: what a guest that broke out of its machine could
// reach. docs/boughvm-protocol.md, "The jail". Used by main.cc before the first request is read, while there is one
// thread.
//
//   jail.cc        the order of it all, and the process that waits outside
//   namespaces.cc  its own view of users, processes, files, network
//   reaper.cc      the first process of the PID namespace
//   privileges.cc  capabilities, limits, environment
//   filter.cc      system calls, as data
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::vmm {

/// What holds; told by the method status.
struct JailReport {
  bool user = false;
  bool pid = false;
  bool mount = false;
  bool network = false;
  bool ipc = false;
  bool uts = false;
  bool filter = false;
  /// A /proc of this PID namespace that is mounted nowhere, or -1. Open for good.
  int procFd = -1;
  /// In words: what this host did not allow.
  std::vector<std::string> missing;
};

struct JailOptions {
  /// A cgroup v2 folder to enter; empty: none.
  std::string cgroup;
};

/// Returns in another process, locked in. The process that called stays outside, passes SIGTERM, SIGINT and SIGHUP on,
/// waits for that process, calls `atEnd` and ends as it ended, whether by exit or by signal. The three signals must be
/// blocked. What the host does not allow of namespaces is left out and reported. Errors, in the calling process or in
/// the new one: E_JAIL (the cgroup cannot be entered, or privileges or the filter could not be given up), E_FORK.
Result<JailReport> enterJail(const JailOptions& options, const std::function<void()>& atEnd);

}  // namespace bough::vmm
