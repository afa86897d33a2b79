// See jail.h.
#include "native/vmm/jail/jail.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "native/vmm/jail/filter.h"
#include "native/vmm/jail/namespaces.h"
#include "native/vmm/jail/privileges.h"
#include "native/vmm/jail/reaper.h"

namespace bough::vmm {
namespace {

Error jailError(int errnum, const std::string& what) {
  return Error{errnum, "E_JAIL",
               "the machine cannot be locked in (" + what + ": " + std::strerror(errnum) +
                   "): mend that, or start it with --no-jail and know that it is not locked in"};
}

Result<std::array<UniqueFd, 2>> makePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return jailError(errno, "pipe");
  return std::array<UniqueFd, 2>{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<Done> enterCgroup(const std::string& folder) {
  const std::string path = folder + "/cgroup.procs";
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), "0", 1) != 1) return jailError(errno, "the cgroup " + folder);
  return Done{};
}

/// Waits outside for `machine` and ends as it ends.
[[noreturn]] void waitOutside(pid_t machine, const std::function<void()>& atEnd) {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&awaited, number);
  ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
  int status = 0;
  while (::waitpid(machine, &status, WNOHANG) == 0) {
    int number = 0;
    ::sigwait(&awaited, &number);
    if (number != SIGCHLD) ::kill(machine, number);
  }
  atEnd();
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  ::signal(number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  ::raise(number);
  ::_exit(128 + number);
}

}  // namespace

Result<JailReport> enterJail(const JailOptions& options, const std::function<void()>& atEnd) {
  JailReport report;
  if (!options.cgroup.empty()) BOUGH_TRY(enterCgroup(options.cgroup));
  limitResources();
  enterUserNamespace(report);
  const bool pids = splitPids(report);
  // Whoever holds the writing end is a machine of this tree; the reaper waits for the last of them.
  BOUGH_ASSIGN(auto living, makePipe());
  if (pids) {
    const pid_t first = ::fork();
    if (first < 0) return Error{errno, "E_FORK", std::string("fork: ") + std::strerror(errno)};
    if (first == 0) {
      living[1].reset();
      reap(living[0].get());
    }
    living[0].reset();
  }
  // Only the process outside holds the writing end of this one.
  BOUGH_ASSIGN(auto outside, makePipe());
  const pid_t machine = ::fork();
  if (machine < 0) return Error{errno, "E_FORK", std::string("fork: ") + std::strerror(errno)};
  if (machine > 0) {
    living[1].reset();
    outside[0].reset();
    waitOutside(machine, atEnd);
  }
  // For this process only: fork(2) clears it, so that the machines forked from this one stay when it goes.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  outside[1].reset();
  pollfd gone{outside[0].get(), 0, 0};
  if (::poll(&gone, 1, 0) != 0) ::_exit(1);  // it went before the signal was asked for
  // Held for good, and by every child.
  living[1].release();

  splitViews(report);
  report.procFd = openOwnProc(report).release();
  emptyRoot(report);
  if (const int errnum = dropPrivileges(); errnum != 0) return jailError(errnum, "its privileges");
  if (const int errnum = installFilter(report.procFd); errnum != 0) return jailError(errnum, "its filter");
  report.filter = true;
  return report;
}

}  // namespace bough::vmm
