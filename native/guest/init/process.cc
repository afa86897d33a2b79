// See process.h. Its output is in process_output.cc, its input in process_input.cc.
#include "native/guest/init/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

namespace bough::guest {
namespace {

constexpr std::size_t kMaxWaiters = 1024;
constexpr std::size_t kCommandShown = 120;

}  // namespace

Process::Process(Loop& loop, ProcessNumber number, StartRequest request, Spawned spawned, std::uint64_t startedMs)
    : loop_(loop),
      number_(number),
      pid_(spawned.pid),
      request_(std::move(request)),
      startedMs_(startedMs),
      ring_(request_.ring, request_.whenFull) {
  if (request_.terminal) {
    // epoll watches a descriptor once; input needs a watch of its own.
    inputFd_.reset(::fcntl(spawned.output.get(), F_DUPFD_CLOEXEC, 0));
    addSource(std::move(spawned.output), Stream::Terminal);
  } else {
    inputFd_ = std::move(spawned.input);
    addSource(std::move(spawned.output), Stream::Out);
    addSource(std::move(spawned.errors), Stream::Err);
  }
  watchSources();
}

Process::~Process() {
  for (const auto& source : sources_) loop_.unwatch(source->token);
  closeInput();
}

Result<Json> Process::resize(WindowSize size) {
  if (!request_.terminal) return Error{EINVAL, "E_STATE", "Only a pty has a size."};
  if (!inputFd_) return Error{EINVAL, "E_STATE", "The terminal is closed."};
  setTerminalSize(inputFd_.get(), size);
  return Json::object();
}

Result<Json> Process::signal(const SignalRequest& request) {
  // Its group may live on in children that hold its output, and while it does the kernel does not give its number away.
  if (hasEnded() && (!request.group || outputEnded())) return Error{ESRCH, "E_STATE", "The process has ended."};
  if (::kill(request.group ? -pid_ : pid_, request.signal) != 0) {
    return Error{errno, "E_STATE", "The signal cannot be sent: nothing is left of the process."};
  }
  return Json::object();
}

void Process::wait(const Reply& reply) {
  if (hasEnded()) return reply(Json{{"exit", exitJson()}, {"to", exitTo_}});
  std::erase_if(waiters_, [](const Reply& each) { return each.expired(); });
  if (waiters_.size() >= kMaxWaiters) return reply(Error{EAGAIN, "E_LIMIT", "Too many wait for this process."});
  waiters_.push_back(reply);
}

void Process::ended(int waitStatus) {
  waitStatus_ = waitStatus;
  // What it wrote before its end belongs before its end.
  drainSources();
  exitTo_ = ring_.to();
  for (const Reply& reply : std::exchange(waiters_, {})) reply(Json{{"exit", exitJson()}, {"to", exitTo_}});
  pump();
}

void Process::abandon(const Error& why) {
  for (const Reply& reply : std::exchange(waiters_, {})) reply(why);
  for (const InputWaiter& waiter : std::exchange(inputWaiters_, {})) waiter.reply(why);
}

Json Process::exitJson() const {
  const int status = *waitStatus_;
  if (WIFSIGNALED(status)) return Json{{"signal", signalName(WTERMSIG(status))}};
  return Json{{"code", WEXITSTATUS(status)}};
}

Json Process::started(bool existing) const {
  return Json{{"process", number_}, {"pid", pid_},           {"from", ring_.from()},
              {"to", ring_.to()},   {"received", received_}, {"existing", existing}};
}

Json Process::describe() const {
  std::string command;
  for (const std::string& each : request_.argv) {
    if (!command.empty()) command += ' ';
    command += each;
    if (command.size() > kCommandShown) break;
  }
  command.resize(std::min(command.size(), kCommandShown));
  Json json{{"process", number_},
            {"kind", request_.terminal ? "pty" : "exec"},
            {"pid", pid_},
            {"command", std::move(command)},
            {"startedMs", startedMs_},
            {"received", received_},
            {"from", ring_.from()},
            {"to", ring_.to()},
            {"ended", hasEnded() && outputEnded()}};
  if (!request_.key.empty()) json["key"] = request_.key;
  if (hasEnded()) json["exit"] = exitJson();
  return json;
}

}  // namespace bough::guest
