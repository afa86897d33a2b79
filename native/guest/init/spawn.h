// Starts a program: fork, user, folder, terminal or pipes, exec. Used by process_table.cc.
#pragma once

#include <sys/types.h>

#include <string>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/guest/init/requests.h"

namespace bough::guest {

inline constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct Spawned {
  pid_t pid = -1;
  /// Ends without a byte once the program runs; otherwise says why it does not (`verdictError`).
  UniqueFd verdict;
  UniqueFd input, output, errors;  // pipes; a terminal has `output` alone
};

/// Forks at once and returns; whether the program runs comes through `verdict`, since exec may have to wait for a slow
/// file system and pid 1 must not. `cgroupProcs`: the file that a process writes itself into, -1 for none. All
/// descriptors are non-blocking.
Result<Spawned> spawn(const StartRequest& request, int cgroupProcs);

/// What came through `verdict`, as the error of the request.
Error verdictError(std::string_view bytes, const StartRequest& request);

void setTerminalSize(int master, WindowSize size);

}  // namespace bough::guest
