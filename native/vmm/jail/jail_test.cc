// The jail, from inside: each case locks a process of its own in and tries. As root and as an ordinary user, with and
// without what this host allows of namespaces.
#include "native/vmm/jail/jail.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "native/vmm/jail/privileges.h"

using namespace bough;
using namespace bough::vmm;

namespace {

constexpr uid_t kNobody = 65534;
constexpr int kFailed = 77;

int waitFor(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Locks a process in and runs `probe` there; what that answers, or 1000 and the signal that ended it.
pid_t startInJail(
    uid_t user, const std::function<int(const JailReport&)>& probe, const JailOptions& options = {},
    const std::function<void()>& atEnd = [] {}) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stops, number);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  if (user != ::geteuid() && (::setgid(user) != 0 || ::setuid(user) != 0)) ::_exit(kFailed);
  // setuid(2) makes a process that cannot write its own /proc; one that was started by the user can.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  const auto report = enterJail(options, atEnd);
  ::_exit(report ? probe(*report) : report.error().code == "E_JAIL" ? kFailed : kFailed + 1);
}

int inJail(uid_t user, const std::function<int(const JailReport&)>& probe) { return waitFor(startInJail(user, probe)); }

/// 0 if it failed with `expected`.
int failsWith(long answer, int expected) { return answer == -1 && errno == expected ? 0 : answer == -1 ? errno : 200; }

std::vector<uid_t> users() {
  if (::geteuid() != 0) return {::geteuid()};
  return {0, kNobody};
}

struct Pipe {
  Pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  ~Pipe() {
    for (const int fd : ends) ::close(fd);
  }
  std::array<int, 2> ends{};
};

}  // namespace

TEST_CASE("files, networks, programs and other processes are out of reach") {
  for (const uid_t user : users()) {
    CAPTURE(user);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::open("/etc/passwd", O_RDONLY), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::syscall(SYS_open, "/etc/passwd", 0), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::socket(AF_INET, SOCK_STREAM, 0), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::socket(AF_UNIX, SOCK_STREAM, 0), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::connect(0, nullptr, 0), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) {
            std::array<int, 2> ends{};
            return failsWith(::socketpair(AF_INET, SOCK_STREAM, 0, ends.data()), EPERM);
          }) == 0);
    CHECK(inJail(user, [](const JailReport&) {
            return failsWith(
                ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0,
                EPERM);
          }) == 0);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::ioctl(2, TIOCSTI, "x"), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) { return failsWith(::kill(1, SIGTERM), EPERM); }) == 0);
    CHECK(inJail(user, [](const JailReport&) {
            return failsWith(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM);
          }) == 0);
    // Whoever tries these has taken the process over: it is ended, and so is who waits outside, by the same signal.
    CHECK(inJail(user, [](const JailReport&) { return ::execl("/bin/true", "true", nullptr); }) == 1000 + SIGSYS);
    CHECK(inJail(user, [](const JailReport&) {
            return static_cast<int>(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
          }) == 1000 + SIGSYS);
    CHECK(inJail(user, [](const JailReport&) { return ::unshare(CLONE_NEWUSER); }) == 1000 + SIGSYS);
  }
}

TEST_CASE("what a machine does works, also in the process that it forks") {
  for (const uid_t user : users()) {
    CAPTURE(user);
    const auto work = [] {
      std::array<int, 2> ends{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return 1;
      int value = 0;
      std::thread([&value] { value = 5; }).join();
      if (value != 5) return 2;
      void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (page == MAP_FAILED) return 3;
      // KVM's requests pass the filter: it is the descriptor that has none.
      if (failsWith(::ioctl(ends[0], KVM_RUN, 0), ENOTTY) != 0) return 4;
      return 0;
    };
    CHECK(inJail(user, [&](const JailReport&) {
            if (const int failed = work(); failed != 0) return failed;
            const pid_t pid = ::fork();
            if (pid == 0) {
              const int failed = work();
              ::_exit(failed != 0 ? failed : failsWith(::open("/etc/passwd", O_RDONLY), EPERM));
            }
            int status = 0;
            return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 100;
          }) == 0);
  }
}

TEST_CASE("nothing is left to give up") {
  for (const uid_t user : users()) {
    CAPTURE(user);
    CHECK(inJail(user, [](const JailReport& report) { return report.filter ? 0 : 1; }) == 0);
    const auto status = [user] {
      // Read before the filter: after the same steps, in a process of its own.
      const pid_t pid = ::fork();
      if (pid == 0) {
        if (user != ::geteuid() && (::setgid(user) != 0 || ::setuid(user) != 0)) ::_exit(kFailed);
        if (dropPrivileges() != 0) ::_exit(1);
        // Not dumpable: as another's, its files are still readable by itself.
        std::ifstream file("/proc/self/status");
        bool caps = true;
        bool privileges = false;
        for (std::string line; std::getline(file, line);) {
          if (line.starts_with("CapEff:") || line.starts_with("CapPrm:") || line.starts_with("CapInh:")) {
            caps = caps && line.ends_with("0000000000000000");
          }
          if (line.starts_with("NoNewPrivs:")) privileges = line.ends_with("1");
        }
        ::_exit(caps && privileges && ::prctl(PR_GET_DUMPABLE) == 0 ? 0 : 2);
      }
      return waitFor(pid);
    };
    CHECK(status() == 0);
  }
}

TEST_CASE("its own memory's sizes are all that it can open, where the host lets it have a /proc") {
  for (const uid_t user : users()) {
    CAPTURE(user);
    const int answer = inJail(user, [](const JailReport& report) {
      if (report.procFd < 0) return 50;
      const int fd = ::openat(report.procFd, "self/smaps_rollup", O_RDONLY | O_CLOEXEC);
      char byte = 0;
      if (fd < 0 || ::read(fd, &byte, 1) != 1) return 1;
      if (::openat(report.procFd, "self/smaps_rollup", O_RDWR | O_CLOEXEC) >= 0 || errno != EPERM) return 2;
      if (::openat(AT_FDCWD, "/", O_RDONLY | O_CLOEXEC) >= 0 || errno != EPERM) return 3;
      if (::openat(report.procFd, "/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0) return 4;
      if (::openat(report.procFd, "self/root/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0) return 5;
      // The process outside has no number here, the first one is not to be looked into.
      if (::openat(report.procFd, "1/mem", O_RDONLY | O_CLOEXEC) >= 0) return 6;
      return 0;
    });
    if (answer == 50)
      MESSAGE("user ", user, ": no /proc of its own on this host");
    else
      CHECK(answer == 0);
  }
}

TEST_CASE("a process that was forked in the jail outlives the first one and who waits outside") {
  for (const uid_t user : users()) {
    CAPTURE(user);
    const Pipe go;
    const Pipe said;
    const Pipe tree;
    const pid_t outside = startInJail(user, [&](const JailReport&) {
      if (::fork() == 0) {
        ::setsid();
        ::close(go.ends[1]);
        char byte = 0;
        // Waits until the test has seen the others go.
        const bool told = ::read(go.ends[0], &byte, 1) == 1;
        ::_exit(told && ::write(said.ends[1], "x", 1) == 1 ? 0 : 1);
      }
      return 7;
    });
    CHECK(waitFor(outside) == 7);
    REQUIRE(::write(go.ends[1], "g", 1) == 1);
    pollfd answer{said.ends[0], POLLIN, 0};
    CHECK(::poll(&answer, 1, 30'000) == 1);
  }
}

TEST_CASE("the first process of the tree ends with its last machine") {
  for (const uid_t user : users()) {
    CAPTURE(user);
    const Pipe told;
    // The number of the tree's PID namespace, by which its processes are found from outside.
    const pid_t outside = startInJail(user, [&](const JailReport& report) {
      struct stat status{};
      if (report.procFd >= 0) {
        const int fd = ::openat(report.procFd, "self/ns/pid", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || ::fstat(fd, &status) != 0) return 1;
      }
      return ::write(told.ends[1], &status.st_ino, sizeof status.st_ino) > 0 ? 0 : 2;
    });
    CHECK(waitFor(outside) == 0);
    ino_t number = 0;
    REQUIRE(::read(told.ends[0], &number, sizeof number) == sizeof number);
    if (number == 0) {
      MESSAGE("user ", user, ": no /proc of its own on this host");
      continue;
    }
    const std::string name = "pid:[" + std::to_string(number) + "]";
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code unreadable;
      if (std::filesystem::read_symlink(entry.path() / "ns" / "pid", unreadable).string() != name) continue;
      // Still on its way out.
      const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, std::atoi(entry.path().filename().c_str()), 0));
      if (pidfd < 0) continue;
      pollfd ended{pidfd, POLLIN, 0};
      CHECK(::poll(&ended, 1, 30'000) == 1);
      ::close(pidfd);
    }
  }
}

TEST_CASE("who waits outside passes signals on, cleans up, and takes the machine along when it is killed") {
  const Pipe ready;
  const Pipe ended;
  const auto waitForSignal = [&](const JailReport&) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    const int fd = static_cast<int>(::syscall(SYS_signalfd4, -1, &stops, 8, 0));
    if (::write(ready.ends[1], "r", 1) != 1) return 1;
    std::array<char, 128> info{};
    return ::read(fd, info.data(), info.size()) == 128 ? 9 : 2;
  };
  char byte = 0;
  SUBCASE("SIGTERM arrives, and the clean-up runs outside") {
    const pid_t outside = startInJail(::geteuid(), waitForSignal, {},
                                      [&] { [[maybe_unused]] const ssize_t told = ::write(ended.ends[1], "e", 1); });
    REQUIRE(::read(ready.ends[0], &byte, 1) == 1);
    ::kill(outside, SIGTERM);
    CHECK(waitFor(outside) == 9);
    pollfd told{ended.ends[0], POLLIN, 0};
    CHECK(::poll(&told, 1, 0) == 1);
  }
  SUBCASE("SIGKILL") {
    Pipe held;
    const pid_t outside = startInJail(::geteuid(), [&](const JailReport& report) {
      ::close(held.ends[0]);
      return waitForSignal(report);
    });
    ::close(held.ends[1]);
    held.ends[1] = ::dup(0);
    REQUIRE(::read(ready.ends[0], &byte, 1) == 1);
    ::kill(outside, SIGKILL);
    CHECK(waitFor(outside) == 1000 + SIGKILL);
    // The machine held the other end: its end of file is its end.
    pollfd gone{held.ends[0], POLLIN, 0};
    CHECK(::poll(&gone, 1, 30'000) == 1);
  }
}

TEST_CASE("a cgroup that is not there is an error, not a machine without one") {
  CHECK(waitFor(startInJail(::geteuid(), [](const JailReport&) { return 0; }, {"/no/such/cgroup"})) == kFailed);
}

TEST_CASE("the environment is forgotten, also where it lay") {
  ::setenv("BOUGH_TEST_SECRET", "swordfish", 1);
  const char* value = ::getenv("BOUGH_TEST_SECRET");
  REQUIRE(value != nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    forgetEnvironment();
    ::_exit(::getenv("BOUGH_TEST_SECRET") == nullptr && value[0] == '\0' ? 0 : 1);
  }
  CHECK(waitFor(pid) == 0);
  ::unsetenv("BOUGH_TEST_SECRET");
}
