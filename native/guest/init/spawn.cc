// See spawn.h.
#include "native/guest/init/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace bough::guest {
namespace {

/// Where the child was when something failed. Travels through the verdict pipe with errno.
enum class Stage : int { Setup, User, Folder, Program };

struct Verdict {
  Stage stage;
  int error;
};

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> makePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sysError(errno, "A pipe cannot be made");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void dontBlock(const UniqueFd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

/// The child's ends: three pipes, or the terminal's own side. That is opened before the fork: a master that nobody is
/// on reads as ended.
struct ChildSide {
  UniqueFd input, output, errors, terminal;
};

struct Sides {
  ChildSide child;
  Spawned parent;
};

Result<Sides> makeTerminal(WindowSize size) {
  Sides sides;
  sides.parent.output.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int master = sides.parent.output.get();
  std::array<char, 64> name{};
  if (master < 0 || ::unlockpt(master) != 0 || ::ptsname_r(master, name.data(), name.size()) != 0) {
    return sysError(errno, "A terminal cannot be made (/dev/ptmx)");
  }
  sides.child.terminal.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!sides.child.terminal) return sysError(errno, std::string("The terminal cannot be opened: ") + name.data());
  setTerminalSize(master, size);
  return sides;
}

Result<Sides> makePipes(bool input) {
  Sides sides;
  if (input) {
    BOUGH_ASSIGN(Pipe pipe, makePipe());
    sides.child.input = std::move(pipe.read);
    sides.parent.input = std::move(pipe.write);
    dontBlock(sides.parent.input);
  } else {
    sides.child.input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!sides.child.input) return sysError(errno, "/dev/null cannot be opened");
  }
  BOUGH_ASSIGN(Pipe output, makePipe());
  BOUGH_ASSIGN(Pipe errors, makePipe());
  sides.child.output = std::move(output.write);
  sides.child.errors = std::move(errors.write);
  sides.parent.output = std::move(output.read);
  sides.parent.errors = std::move(errors.read);
  dontBlock(sides.parent.errors);
  return sides;
}

/// Pointers for execve(2). Made before the fork.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& string : strings) out.push_back(const_cast<char*>(string.c_str()));
  out.push_back(nullptr);
  return out;
}

void defaultSignals() {
  for (int number = 1; number < NSIG; number++) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool takeTerminal(const ChildSide& side, const StartRequest& request) {
  const int fd = side.terminal.get();
  if (::ioctl(fd, TIOCSCTTY, 0) != 0) return false;
  // As login(1) does: the terminal is its user's, so that programs may open it again by name.
  [[maybe_unused]] const int owned = ::fchown(fd, request.uid, static_cast<gid_t>(-1));
  return ::dup2(fd, 0) >= 0 && ::dup2(fd, 1) >= 0 && ::dup2(fd, 2) >= 0;
}

bool takePipes(const ChildSide& side) {
  return ::dup2(side.input.get(), 0) >= 0 && ::dup2(side.output.get(), 1) >= 0 && ::dup2(side.errors.get(), 2) >= 0;
}

bool takeUser(const StartRequest& request) {
  if (::setgroups(request.groups.size(), request.groups.data()) != 0) return false;
  return ::setresgid(request.gid, request.gid, request.gid) == 0 &&
         ::setresuid(request.uid, request.uid, request.uid) == 0;
}

[[noreturn]] void becomeProgram(const StartRequest& request, const ChildSide& side, char* const* argv,
                                std::vector<char*>& environment, int cgroupProcs, int verdict) {
  const auto give = [verdict](Stage stage) {
    const Verdict bytes{.stage = stage, .error = errno};
    [[maybe_unused]] const ssize_t written = ::write(verdict, &bytes, sizeof bytes);
    ::_exit(127);
  };
  defaultSignals();
  ::umask(022);
  if (::setsid() < 0) give(Stage::Setup);
  // Before it has any other right: from here on it stops when the machine's processes are to stop.
  if (cgroupProcs >= 0 && ::write(cgroupProcs, "0", 1) != 1) give(Stage::Setup);
  if (!(side.terminal ? takeTerminal(side, request) : takePipes(side))) give(Stage::Setup);
  if (!takeUser(request)) give(Stage::User);
  if (::chdir(request.cwd.c_str()) != 0) give(Stage::Folder);
  ::environ = environment.data();  // execvp looks for the program in this PATH
  ::execvp(argv[0], argv);
  give(Stage::Program);
  ::_exit(127);
}

}  // namespace

Result<Spawned> spawn(const StartRequest& request, int cgroupProcs) {
  BOUGH_ASSIGN(Sides sides, request.terminal ? makeTerminal(*request.terminal) : makePipes(request.input));
  BOUGH_ASSIGN(Pipe verdict, makePipe());
  dontBlock(sides.parent.output);
  dontBlock(verdict.read);

  std::vector<std::string> variables = request.environment;
  const bool hasPath = std::any_of(variables.begin(), variables.end(),
                                   [](const std::string& each) { return each.starts_with("PATH="); });
  if (!hasPath) variables.push_back(std::string("PATH=") + kPath);
  const std::vector<char*> argv = pointers(request.argv);
  std::vector<char*> environment = pointers(variables);

  const pid_t pid = ::fork();
  if (pid < 0) return sysError(errno, "A process cannot be made");
  if (pid == 0) {
    becomeProgram(request, sides.child, argv.data(), environment, cgroupProcs, verdict.write.get());
  }
  sides.parent.pid = pid;
  sides.parent.verdict = std::move(verdict.read);
  return std::move(sides.parent);
}

Error verdictError(std::string_view bytes, const StartRequest& request) {
  Verdict verdict{.stage = Stage::Setup, .error = EIO};
  if (bytes.size() == sizeof verdict) std::memcpy(&verdict, bytes.data(), sizeof verdict);
  switch (verdict.stage) {
    case Stage::Program:
      return Error{verdict.error, "E_EXEC",
                   "The program " + request.argv.front() + " cannot be started: " + std::strerror(verdict.error) + "."};
    case Stage::Folder:
      return Error{verdict.error, "E_CWD",
                   "The folder " + request.cwd + " cannot be entered: " + std::strerror(verdict.error) + "."};
    case Stage::User:
      return Error{
          verdict.error, "E_USER",
          "The user " + std::to_string(request.uid) + " cannot be taken: " + std::strerror(verdict.error) + "."};
    case Stage::Setup:
      break;
  }
  return Error{verdict.error, "E_IO",
               std::string("A process was made but could not be set up: ") + std::strerror(verdict.error) + "."};
}

void setTerminalSize(int master, WindowSize size) {
  winsize window{};
  window.ws_row = size.rows;
  window.ws_col = size.columns;
  ::ioctl(master, TIOCSWINSZ, &window);
}

}  // namespace bough::guest
