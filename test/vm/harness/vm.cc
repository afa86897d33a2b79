// See vm.h.
#include "test/vm/harness/vm.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "native/common/base64.h"
#include "test/vm/harness/host.h"

namespace bough::vmtest {

namespace {

UniqueFd openPidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

void signalPidfd(int pidfd, int signal) { ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0); }

bool hasEnded(int pidfd, int waitMs) {
  pollfd one{pidfd, POLLIN, 0};
  return ::poll(&one, 1, waitMs) > 0;
}

/// The number of a process in the innermost PID namespace that it is in.
pid_t innermostPid(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(6));
    pid_t last = 0;
    while (numbers >> last) {
    }
    return last;
  }
  return 0;
}

std::string nextName() {
  static unsigned last = 0;
  return "child-" + std::to_string(++last);
}

}  // namespace

Vm::Vm(const VmOptions& options) { start(options); }

Vm::Vm(const std::string& guest, Json params, const VmOptions& options) {
  start(options);
  const UniqueFd kernel = openFile(guestPath(guest));
  const Answer answer = boot(kernel.get(), std::move(params));
  if (!answer.ok()) throw std::runtime_error("boot: " + answer.text() + "\n" + log());
}

Vm::Vm(Vm&& other) noexcept
    : name_(std::move(other.name_)),
      listener_(std::move(other.listener_)),
      console_(std::move(other.console_)),
      errors_(std::move(other.errors_)),
      control_(std::move(other.control_)),
      started_(std::exchange(other.started_, 0)),
      pidfd_(std::move(other.pidfd_)),
      status_(other.status_) {}

Vm& Vm::operator=(Vm&& other) noexcept {
  if (this == &other) return *this;
  this->~Vm();
  return *new (this) Vm(std::move(other));
}

Vm::~Vm() { kill(); }

void Vm::start(const VmOptions& options) {
  std::vector<std::string> words{boughvmPath(), "--control-fd", std::to_string(listener_.fd())};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  started_ = ::fork();
  if (started_ < 0) throw std::runtime_error("fork");
  if (started_ == 0) {
    ::fcntl(listener_.fd(), F_SETFD, 0);
    ::dup2(errors_.writeEnd(), STDOUT_FILENO);
    ::dup2(errors_.writeEnd(), STDERR_FILENO);
    if (options.before != nullptr) options.before();
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  // Only the machine listens now: a connection fails when it is gone.
  listener_.letGo();
  errors_.letGo();
}

Control& Vm::control() {
  if (!control_) {
    try {
      control_.emplace(listener_.connect());
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + "; it said: " + log());
    }
  }
  return *control_;
}

std::string Vm::log() const { return const_cast<Console&>(errors_).text(); }

Answer Vm::ask(const std::string& method, Json params, const std::vector<int>& fds) {
  return control().ask(method, std::move(params), fds);
}

Answer Vm::boot(int kernel, Json params, std::vector<int> more) {
  params["kernel"] = 0;
  params["console"] = 1;
  std::vector<int> fds{kernel, console_.writeEnd()};
  fds.insert(fds.end(), more.begin(), more.end());
  if (!params.contains("ramMiB")) params["ramMiB"] = 64;
  Answer answer = ask("boot", std::move(params), fds);
  // A boot that failed may be tried again.
  if (answer.ok()) console_.letGo();
  return answer;
}

Json Vm::must(const std::string& method, Json params, const std::vector<int>& fds) {
  Answer answer = ask(method, std::move(params), fds);
  if (!answer.ok()) throw std::runtime_error(method + ": " + answer.text());
  return std::move(answer.result);
}

void Vm::type(const std::string& characters) { must("console.input", {{"data", toBase64(characters)}}); }

std::string Vm::command(const std::string& characters) {
  std::size_t from = console_.size();
  type(characters);
  return console_.line(from);
}

std::string Vm::state() { return must("status").value("state", "?"); }

Vm::Forked Vm::tryFork(unsigned count, bool frozen, Json params, std::vector<std::vector<int>> more) {
  Forked forked;
  std::vector<int> fds;
  params["children"] = Json::array();
  for (unsigned i = 0; i < count; i++) {
    Vm child{Child{}};
    child.name_ = nextName();
    child.errors_.letGo();
    Json shape{{"name", child.name_}, {"control", fds.size()}};
    fds.push_back(child.listener_.fd());
    if (frozen) {
      shape["frozen"] = true;  // it runs no device
    } else {
      shape["console"] = fds.size();
      fds.push_back(child.console_.writeEnd());
    }
    if (i < more.size()) {
      for (const int fd : more[i]) {
        shape["fileSystems"].push_back(fds.size());
        fds.push_back(fd);
      }
    }
    params["children"].push_back(std::move(shape));
    forked.children.push_back(std::move(child));
  }
  forked.answer = ask("fork", std::move(params), fds);
  for (std::size_t i = 0; i < forked.children.size(); i++) {
    forked.children[i].listener_.letGo();
    forked.children[i].console_.letGo();
    if (forked.answer.ok()) forked.children[i].pidfd_ = std::move(forked.answer.fds.at(i));
  }
  if (!forked.answer.ok()) forked.children.clear();
  return forked;
}

std::vector<Vm> Vm::fork(unsigned count, bool frozen, Json params) {
  Forked forked = tryFork(count, frozen, std::move(params));
  if (!forked.answer.ok()) throw std::runtime_error("fork: " + forked.answer.text());
  return std::move(forked.children);
}

Vm Vm::forkOne(bool frozen, Json params) { return std::move(fork(1, frozen, std::move(params)).front()); }

std::optional<pid_t> Vm::pid() {
  if (!pidfd_ && started_ != 0) {
    const pid_t inside = must("status").at("pid");
    std::vector<pid_t> candidates = processesBelow(started_);
    candidates.push_back(started_);
    for (const pid_t candidate : candidates) {
      if (innermostPid(candidate) == inside) pidfd_ = openPidfd(candidate);
    }
  }
  return pidfd_ ? processOf(pidfd_.get()) : std::nullopt;
}

bool Vm::alive() {
  pid();
  return pidfd_ && !hasEnded(pidfd_.get(), 0);
}

void Vm::waitGone() {
  if (pidfd_ && !hasEnded(pidfd_.get(), 30'000)) throw std::runtime_error("a machine did not end: " + name_);
  if (started_ != 0 && !status_) {
    int status = 0;
    while (::waitpid(started_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
  }
}

void Vm::kill() {
  if (pidfd_) signalPidfd(pidfd_.get(), SIGKILL);
  if (started_ != 0 && !status_) ::kill(started_, SIGKILL);
  try {
    waitGone();
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void Vm::end() {
  pid();
  must("kill");
  waitGone();
}

int Vm::exitStatus(Seconds deadline) {
  const UniqueFd pidfd = openPidfd(started_);
  const auto milliseconds = std::chrono::milliseconds(deadline).count();
  if (!status_ && !hasEnded(pidfd.get(), static_cast<int>(milliseconds))) throw std::runtime_error("it does not end");
  waitGone();
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
}

}  // namespace bough::vmtest
