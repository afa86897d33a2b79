// See service.h.
#include "native/vmm/control/service.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "native/common/log.h"
#include "native/common/version.h"
#include "native/vmm/control/memory_use.h"

namespace bough::vmm {

void nameLog(const std::string& name) {
  // logLine() prints glibc's program_invocation_short_name; it has to live as long as the process.
  static std::string prefix;
  prefix = "boughvm[" + name + "]";
  ::program_invocation_short_name = prefix.data();
}

Service::Service(EventLoop& loop, std::unique_ptr<Kvm> kvm, ServiceOptions options)
    : loop_(loop),
      options_(std::move(options)),
      kvm_(std::move(kvm)),
      signals_(loop, [this] { finish(ExitCode::kOk); }),
      children_(loop, [this](const ChildEnd& end) {
        Json event = {{"event", "child-ended"}, {"name", end.name}, {"pid", end.pid}};
        if (end.signal != 0)
          event["signal"] = end.signal;
        else
          event["exit"] = end.exit;
        server_->event(event);
      }) {}

Result<std::unique_ptr<Service>> Service::start(EventLoop& loop, UniqueFd listener, std::unique_ptr<Kvm> kvm,
                                                ServiceOptions options) {
  std::unique_ptr<Service> service(new Service(loop, std::move(kvm), std::move(options)));
  nameLog(service->options_.name);
  Service* self = service.get();
  BOUGH_TRY(self->signals_.watch());
  BOUGH_ASSIGN(self->server_, Server::start(loop, std::move(listener), [self](ConnectionId from, Request request) {
                 self->handle(from, std::move(request));
               }));
  return service;
}

ExitCode Service::run() {
  while (!ended_) loop_.runOnce(-1);
  return *ended_;
}

void Service::handle(ConnectionId from, Request request) {
  using Method = Result<Json> (Service::*)(Request&);
  static const std::unordered_map<std::string, Method> kMethods = {
      {"hello", &Service::hello},     {"boot", &Service::boot},
      {"load", &Service::load},       {"pause", &Service::pause},
      {"resume", &Service::resume},   {"status", &Service::status},
      {"metrics", &Service::metrics}, {"console.input", &Service::consoleInput},
      {"kill", &Service::kill},
  };
  if (request.method == "fork") return fork(from, request.id, readFork(request));
  if (request.method == "checkpoint") return fork(from, request.id, readCheckpoint(request));
  if (request.method == "save") return save(from, request.id, readSave(request));
  if (request.method == "subscribe") {
    if (const auto nothing = readNothing(request); !nothing) {
      server_->fail(from, request.id, nothing.error());
    } else if (server_->answer(from, request.id, Json::object())) {
      server_->subscribe(from);
    }
    return;
  }
  const auto found = kMethods.find(request.method);
  if (found == kMethods.end()) {
    server_->fail(from, request.id,
                  Error{ENOSYS, "E_NO_METHOD", "There is no method of this name: see docs/boughvm-protocol.md."});
    return;
  }
  auto result = (this->*found->second)(request);
  if (result)
    server_->answer(from, request.id, std::move(*result));
  else
    server_->fail(from, request.id, result.error());
}

Result<Done> Service::needMachine() const {
  if (machine_) return Done{};
  return Error{ENOENT, "E_NO_MACHINE", "This process has no machine yet: boot or load one."};
}

Result<Json> Service::hello(Request& request) {
  BOUGH_TRY(readNothing(request));
  return Json{{"version", kVersion},
              {"protocol", 1},
              {"name", options_.name},
              {"pid", ::getpid()},
              {"state", machine_ ? word(machine_->state()) : "empty"}};
}

Result<Json> Service::pause(Request& request) {
  BOUGH_ASSIGN(const auto timeout, readPause(request));
  BOUGH_TRY(needMachine());
  BOUGH_TRY(machine_->pause(timeout));
  return Json{{"pause", lastPause()}};
}

Result<Json> Service::resume(Request& request) {
  BOUGH_TRY(readNothing(request));
  BOUGH_TRY(needMachine());
  BOUGH_TRY(machine_->resume());
  return Json{{"pause", lastPause()}};
}

Result<Json> Service::status(Request& request) {
  BOUGH_TRY(readNothing(request));
  return statusJson();
}

Result<Json> Service::metrics(Request& request) {
  BOUGH_TRY(readNothing(request));
  BOUGH_TRY(needMachine());
  const Machine::Metrics metrics = machine_->metrics();
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - exitsSeenAt_).count();
  const double rate = seconds > 0 ? static_cast<double>(metrics.exits - exitsSeen_) / seconds : 0;
  exitsSeen_ = metrics.exits;
  exitsSeenAt_ = now;
  Json memory;
  if (const auto use = memoryUse(options_.jail.procFd)) {
    memory = {{"rssKiB", use->rssKiB}, {"pssKiB", use->pssKiB}, {"ownKiB", use->ownKiB}};
  }
  return Json{{"pause", toJson(metrics.lastPause)},
              {"pauses", metrics.pauses},
              {"forks", metrics.forks},
              {"exits", metrics.exits},
              {"exitsPerSecond", rate},
              {"childStartUs", metrics.childStart.count()},
              {"runningSinceUs", metrics.runningSince.count()},
              {"memory", std::move(memory)}};
}

Result<Json> Service::consoleInput(Request& request) {
  BOUGH_ASSIGN(const std::string bytes, readConsoleInput(request));
  BOUGH_TRY(needMachine());
  if (machine_->state() == MachineState::kFrozen || machine_->state() == MachineState::kStopped) {
    return Error{EINVAL, "E_STATE", std::string("A machine that is ") + word(machine_->state()) + " reads no input."};
  }
  machine_->consoleInput(std::as_bytes(std::span(bytes)));
  return Json::object();
}

Result<Json> Service::kill(Request& request) {
  BOUGH_TRY(readNothing(request));
  finish(ExitCode::kOk);
  return Json::object();
}

UniqueFd Service::connectVsock(std::uint32_t port) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return {};
  UniqueFd own(ends[0]);
  if (!server_->eventToFirst({{"event", "vsock.connect"}, {"port", port}}, UniqueFd(ends[1]))) return {};
  return own;
}

void Service::adoptMachine(std::unique_ptr<Machine> machine) {
  machine_ = std::move(machine);
  kvm_.reset();
  exitsSeen_ = 0;
  exitsSeenAt_ = Clock::now();
  machine_->onVsockConnect([this](std::uint32_t port) { return connectVsock(port); });
  machine_->onStopped([this] {
    const std::string reason = machine_->stopReason();
    logLine("the guest has ended: " + reason);
    server_->event({{"event", "stopped"}, {"reason", reason}});
  });
}

}  // namespace bough::vmm
