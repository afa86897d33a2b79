// See requests.h.
#include "native/guest/init/requests.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

#include <utility>

#include "native/guest/init/framing.h"
#include "native/guest/init/request.h"

namespace bough::guest {
namespace {

constexpr std::size_t kMaxArguments = 4096;
constexpr std::size_t kMaxVariables = 4096;
constexpr std::size_t kMaxGroups = 64;
constexpr std::size_t kMaxKey = 100;
constexpr std::uint64_t kMaxId = 0xFFFFFFFE;  // -1 means "leave it" to setresuid(2)
constexpr std::uint64_t kLeastRing = 4096, kMostRing = 4 << 20, kUsualRing = 256 << 10;
constexpr std::uint64_t kLeastWindow = 4096, kMostWindow = 16 << 20, kUsualWindow = 256 << 10;
constexpr std::uint64_t kMaxSide = 10000;  // of a terminal, in characters
constexpr std::uint64_t kMaxGraceMs = 60000, kUsualGraceMs = 2000;

template <typename T>
Result<T> settled(const Params& params, T value) {
  if (params.failed()) return params.error();
  return value;
}

std::uint64_t windowOf(Params& params) { return params.numberOr("window", kLeastWindow, kMostWindow, kUsualWindow); }

WindowSize sizeOf(Params& params) {
  return WindowSize{.rows = static_cast<std::uint16_t>(params.number("rows", 1, kMaxSide)),
                    .columns = static_cast<std::uint16_t>(params.number("columns", 1, kMaxSide))};
}

StartRequest commonStart(Params& params, WhenFull usual) {
  StartRequest request;
  request.argv = params.names("argv", 1, kMaxArguments);
  if (!params.failed() && request.argv.front().empty()) params.fail("argv", "starts with an empty name");
  request.environment = params.environment("env", kMaxVariables);
  request.cwd = params.name("cwd", PATH_MAX - 1);
  if (!params.failed() && !request.cwd.starts_with('/')) params.fail("cwd", "must be an absolute path");
  request.uid = static_cast<uid_t>(params.numberOr("uid", 0, kMaxId, 0));
  request.gid = static_cast<gid_t>(params.numberOr("gid", 0, kMaxId, request.uid));
  for (const std::uint64_t group : params.numbers("groups", kMaxGroups, kMaxId)) {
    request.groups.push_back(static_cast<gid_t>(group));
  }
  request.key = params.textOr("key", kMaxKey, "");
  request.ring = params.numberOr("ring", kLeastRing, kMostRing, kUsualRing);
  const std::size_t word = params.wordOr("whenFull", {"wait", "drop"}, usual == WhenFull::Wait ? 0 : 1);
  request.whenFull = word == 0 ? WhenFull::Wait : WhenFull::Drop;
  if (params.has("window")) request.window = windowOf(params);
  return request;
}

IdentityRequest identityOf(Params& params) {
  return IdentityRequest{.branch = params.text("branch", 200),
                         .name = params.text("name", 200),
                         .hostname = params.textOr("hostname", HOST_NAME_MAX, ""),
                         .index = params.numberOr("index", 0, kMaxNumber, 0)};
}

std::string entropyOf(Params& params) {
  std::string bytes = params.bytes("entropy", kEntropyBytes);
  if (bytes.size() != kEntropyBytes) params.fail("entropy", "must be 32 bytes");
  return bytes;
}

}  // namespace

Result<StartRequest> parseExec(const Json& json) {
  Params params(json);
  StartRequest request = commonStart(params, WhenFull::Wait);
  request.input = params.wordOr("stdin", {"none", "pipe"}, 0) == 1;
  return settled(params, std::move(request));
}

Result<StartRequest> parsePty(const Json& json) {
  Params params(json);
  StartRequest request = commonStart(params, WhenFull::Drop);
  request.input = true;
  request.terminal = sizeOf(params);
  return settled(params, std::move(request));
}

Result<AttachRequest> parseAttach(const Json& json) {
  Params params(json);
  AttachRequest request{.process = params.number("process", 1, kMaxNumber), .from = {}, .window = windowOf(params)};
  if (params.has("from")) request.from = params.number("from", 0, kMaxNumber);
  return settled(params, request);
}

Result<AckRequest> parseAck(const Json& json) {
  Params params(json);
  return settled(
      params, AckRequest{.process = params.number("process", 1, kMaxNumber), .to = params.number("to", 0, kMaxNumber)});
}

Result<InputRequest> parseInput(const Json& json) {
  Params params(json);
  InputRequest request{.process = params.number("process", 1, kMaxNumber),
                       .at = params.number("at", 0, kMaxNumber),
                       .data = params.bytes("data", kLineLimit),
                       .end = params.flag("end")};
  return settled(params, std::move(request));
}

Result<ResizeRequest> parseResize(const Json& json) {
  Params params(json);
  return settled(params, ResizeRequest{.process = params.number("process", 1, kMaxNumber), .size = sizeOf(params)});
}

Result<SignalRequest> parseSignal(const Json& json) {
  Params params(json);
  SignalRequest request{.process = params.number("process", 1, kMaxNumber),
                        .signal = signalNumber(params.text("signal", 16)),
                        .group = params.wordOr("to", {"group", "process"}, 0) == 0};
  if (request.signal == 0) params.fail("signal", "is the name of no signal");
  return settled(params, request);
}

Result<ProcessNumber> parseProcess(const Json& json) {
  Params params(json);
  return settled(params, params.number("process", 1, kMaxNumber));
}

Result<IdentityRequest> parseIdentity(const Json& json) {
  Params params(json);
  IdentityRequest request = identityOf(params);
  return settled(params, std::move(request));
}

Result<std::string> parseReseed(const Json& json) {
  Params params(json);
  std::string bytes = entropyOf(params);
  return settled(params, std::move(bytes));
}

Result<std::uint64_t> parseClock(const Json& json) {
  Params params(json);
  return settled(params, params.number("realtimeUs", 0, kMaxNumber));
}

Result<ForkChildRequest> parseForkChild(const Json& json) {
  Params params(json);
  ForkChildRequest request;
  request.entropy = entropyOf(params);
  if (params.has("realtimeUs")) request.realtimeUs = params.number("realtimeUs", 0, kMaxNumber);
  auto identity = parseIdentity(params.object("identity"));
  if (params.failed()) return params.error();
  if (!identity) return identity.error();
  request.identity = std::move(*identity);
  return request;
}

Result<std::uint16_t> parsePort(const Json& json) {
  Params params(json);
  return settled(params, static_cast<std::uint16_t>(params.number("port", 1, 65535)));
}

Result<std::uint64_t> parseShutdown(const Json& json) {
  Params params(json);
  return settled(params, params.numberOr("graceMs", 0, kMaxGraceMs, kUsualGraceMs));
}

int signalNumber(std::string_view name) {
  if (!name.starts_with("SIG")) return 0;
  name.remove_prefix(3);
  for (int number = 1; number < SIGRTMIN; number++) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

std::string signalName(int number) {
  const char* known = ::sigabbrev_np(number);
  return known == nullptr ? "SIG" + std::to_string(number) : std::string("SIG") + known;
}

}  // namespace bough::guest
