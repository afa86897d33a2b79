// See methods.h.
#include "native/guest/init/methods.h"

#include <errno.h>

#include <string_view>
#include <unordered_map>
#include <utility>

#include "native/common/version.h"
#include "native/guest/init/forward.h"
#include "native/guest/init/requests.h"

namespace bough::guest {
namespace {

struct Call {
  Machine& machine;
  const std::shared_ptr<Connection>& connection;
  std::optional<std::uint64_t> id;
  const Json& params;
  Reply reply;
};

using Method = void (*)(Call&);

/// Reads the parameters; false when they are wrong, which is answered.
template <typename T, typename Parse>
bool read(Call& call, Parse parse, T& out) {
  auto parsed = parse(call.params);
  if (!parsed) {
    call.reply(parsed.error());
    return false;
  }
  out = std::move(*parsed);
  return true;
}

/// The process of the request, or nullptr when there is none, which is answered.
Process* findProcess(Call& call, ProcessNumber number) {
  auto found = call.machine.processes().find(number);
  if (found) return *found;
  call.reply(found.error());
  return nullptr;
}

void hello(Call& call) {
  Machine& machine = call.machine;
  Json problems = Json::array();
  for (const Error& each : machine.boot().problems()) {
    problems.push_back(Json{{"code", each.code}, {"message", each.message}});
  }
  Json json{{"protocol", 1},
            {"version", kVersion},
            {"bootId", bootId()},
            {"hostname", hostname()},
            {"forks", machine.identity().forks()},
            {"root", machine.boot().root()},
            {"workspaces", machine.boot().workspaces()},
            {"frozen", machine.freezer().reasons()},
            {"processes", machine.processes().size()},
            {"realtimeUs", realtimeUs()},
            {"problems", std::move(problems)}};
  if (const auto& identity = machine.identity().current()) json["identity"] = toJson(*identity);
  call.reply(std::move(json));
}

void start(Call& call, Result<StartRequest> (*parse)(const Json&)) {
  StartRequest request;
  if (!read(call, parse, request)) return;
  if (call.machine.freezer().isHeld()) {
    return call.reply(Error{EBUSY, "E_FROZEN", "Nothing can be started while the machine's processes are frozen."});
  }
  if (call.machine.isEnding()) return call.reply(Error{ESHUTDOWN, "E_STATE", "The machine is shutting down."});
  call.machine.processes().start(std::move(request), call.machine.freezer().procs(), call.connection, call.reply);
}

void exec(Call& call) { start(call, parseExec); }
void pty(Call& call) { start(call, parsePty); }

void attach(Call& call) {
  AttachRequest request;
  if (!read(call, parseAttach, request)) return;
  Process* process = findProcess(call, request.process);
  if (process == nullptr) return;
  call.reply(process->attach(call.connection, request));
  process->pump();
}

void detach(Call& call) {
  ProcessNumber number = 0;
  if (!read(call, parseProcess, number)) return;
  Process* process = findProcess(call, number);
  if (process == nullptr) return;
  process->detach(call.connection.get());
  call.reply(Json::object());
}

void ack(Call& call) {
  AckRequest request;
  if (!read(call, parseAck, request)) return;
  Process* process = findProcess(call, request.process);
  if (process == nullptr) return;
  process->ack(call.connection.get(), request.to);
  call.reply(Json::object());
}

void input(Call& call) {
  InputRequest request;
  if (!read(call, parseInput, request)) return;
  Process* process = findProcess(call, request.process);
  if (process != nullptr) process->input(std::move(request), call.reply);
}

void resize(Call& call) {
  ResizeRequest request;
  if (!read(call, parseResize, request)) return;
  Process* process = findProcess(call, request.process);
  if (process != nullptr) call.reply(process->resize(request.size));
}

void signal(Call& call) {
  SignalRequest request;
  if (!read(call, parseSignal, request)) return;
  Process* process = findProcess(call, request.process);
  if (process != nullptr) call.reply(process->signal(request));
}

void wait(Call& call) {
  ProcessNumber number = 0;
  if (!read(call, parseProcess, number)) return;
  Process* process = findProcess(call, number);
  if (process != nullptr) process->wait(call.reply);
}

void list(Call& call) { call.reply(call.machine.processes().list()); }

void forget(Call& call) {
  ProcessNumber number = 0;
  if (read(call, parseProcess, number)) call.reply(call.machine.processes().forget(number));
}

Result<Json> done(const Result<Done>& result) {
  if (!result) return result.error();
  return Json::object();
}

void reseedNow(Call& call) {
  std::string entropy;
  if (read(call, parseReseed, entropy)) call.reply(done(reseed(entropy)));
}

void clock(Call& call) {
  std::uint64_t wanted = 0;
  if (!read(call, parseClock, wanted)) return;
  const auto stepped = setClock(wanted);
  call.reply(stepped ? Result<Json>(Json{{"steppedUs", *stepped}}) : Result<Json>(stepped.error()));
}

void identity(Call& call) {
  IdentityRequest request;
  if (!read(call, parseIdentity, request)) return;
  if (auto became = call.machine.identity().become(request, false); !became) return call.reply(became.error());
  call.reply(Json{{"bootId", bootId()}});
}

void hold(Call& call, Hold hold) {
  call.machine.freezer().freeze(hold, [reply = call.reply](const Result<std::uint64_t>& tookUs) {
    reply(tookUs ? Result<Json>(Json{{"tookUs", *tookUs}}) : Result<Json>(tookUs.error()));
  });
}

void freeze(Call& call) { hold(call, Hold::Host); }
void thaw(Call& call) { call.reply(done(call.machine.freezer().thaw(Hold::Host))); }
void forkPrepare(Call& call) { hold(call, Hold::Fork); }
void forkParent(Call& call) { call.reply(done(call.machine.freezer().thaw(Hold::Fork))); }

/// In this order: no program runs before the random numbers are its own, and none at all if something failed.
Result<Json> becomeChild(Machine& machine, const ForkChildRequest& request) {
  BOUGH_TRY(reseed(request.entropy));
  if (request.realtimeUs) BOUGH_TRY(setClock(*request.realtimeUs));
  BOUGH_TRY(machine.identity().become(request.identity, true));
  BOUGH_TRY(machine.freezer().thaw(Hold::Fork));
  return Json{{"bootId", bootId()}, {"forks", machine.identity().forks()}};
}

void forkChild(Call& call) {
  ForkChildRequest request;
  if (!read(call, parseForkChild, request)) return;
  // Usually frozen before the fork, by fork.prepare: then this is answered at once.
  call.machine.freezer().freeze(
      Hold::Fork, [&machine = call.machine, reply = call.reply, request](const Result<std::uint64_t>& tookUs) {
        reply(tookUs ? becomeChild(machine, request) : Result<Json>(tookUs.error()));
      });
}

void portList(Call& call) { call.reply(listeningPorts()); }

void portForward(Call& call) {
  std::uint16_t port = 0;
  if (!read(call, parsePort, port)) return;
  const bool alone = call.connection->pending() == 1 && !call.machine.processes().isAttached(call.connection.get());
  if (!call.id || !alone) {
    return call.reply(Error{EBUSY, "E_STATE",
                            "A port needs a connection of its own, without other requests and attached processes."});
  }
  forward(call.machine.loop(), call.connection->takeOver(), *call.id, port);
}

void shutdown(Call& call) {
  std::uint64_t graceMs = 0;
  if (!read(call, parseShutdown, graceMs)) return;
  call.reply(Json::object());
  call.machine.shutDown(graceMs);
}

const std::unordered_map<std::string_view, Method>& methods() {
  static const std::unordered_map<std::string_view, Method> kMethods = {
      {"hello", hello},
      {"exec", exec},
      {"pty", pty},
      {"attach", attach},
      {"detach", detach},
      {"ack", ack},
      {"input", input},
      {"resize", resize},
      {"signal", signal},
      {"wait", wait},
      {"list", list},
      {"forget", forget},
      {"reseed", reseedNow},
      {"clock", clock},
      {"identity", identity},
      {"freeze", freeze},
      {"thaw", thaw},
      {"fork.prepare", forkPrepare},
      {"fork.parent", forkParent},
      {"fork.child", forkChild},
      {"port.list", portList},
      {"port.forward", portForward},
      {"shutdown", shutdown},
  };
  return kMethods;
}

}  // namespace

void handle(Machine& machine, const std::shared_ptr<Connection>& connection, Request request) {
  Call call{.machine = machine,
            .connection = connection,
            .id = request.id,
            .params = request.params,
            .reply = Reply(connection, request.id)};
  const auto method = methods().find(request.method);
  if (method == methods().end()) {
    return call.reply(Error{ENOSYS, "E_NO_METHOD", "There is no method " + request.method + "."});
  }
  method->second(call);
}

}  // namespace bough::guest
