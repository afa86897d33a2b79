// What each method is asked, as plain data: the parameters of docs/guest-protocol.md checked and bounded. Used by the
// methods; without effect, so that the fuzzer calls all of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/common/result.h"
#include "native/guest/init/json.h"

namespace bough::guest {

using ProcessNumber = std::uint64_t;

inline constexpr std::size_t kEntropyBytes = 32;

enum class WhenFull { Wait, Drop };

struct WindowSize {
  std::uint16_t rows = 24;
  std::uint16_t columns = 80;
};

struct StartRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  std::string cwd;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::optional<WindowSize> terminal;  // a pty
  bool input = false;                  // a pipe; a pty has input anyway
  std::string key;
  std::size_t ring = 0;
  WhenFull whenFull = WhenFull::Wait;
  std::optional<std::uint64_t> window;  // attach at once
};
Result<StartRequest> parseExec(const Json& params);
Result<StartRequest> parsePty(const Json& params);

struct AttachRequest {
  ProcessNumber process = 0;
  std::optional<std::uint64_t> from;
  std::uint64_t window = 0;
};
Result<AttachRequest> parseAttach(const Json& params);

struct AckRequest {
  ProcessNumber process = 0;
  std::uint64_t to = 0;
};
Result<AckRequest> parseAck(const Json& params);

struct InputRequest {
  ProcessNumber process = 0;
  std::uint64_t at = 0;
  std::string data;
  bool end = false;
};
Result<InputRequest> parseInput(const Json& params);

struct ResizeRequest {
  ProcessNumber process = 0;
  WindowSize size;
};
Result<ResizeRequest> parseResize(const Json& params);

struct SignalRequest {
  ProcessNumber process = 0;
  int signal = 0;
  bool group = true;
};
Result<SignalRequest> parseSignal(const Json& params);

/// Where nothing but `process` is asked.
Result<ProcessNumber> parseProcess(const Json& params);

struct IdentityRequest {
  std::string branch, name, hostname;  // hostname may be empty: stays
  std::uint64_t index = 0;
};
Result<IdentityRequest> parseIdentity(const Json& params);

Result<std::string> parseReseed(const Json& params);
/// Microseconds since 1970.
Result<std::uint64_t> parseClock(const Json& params);

struct ForkChildRequest {
  std::string entropy;
  IdentityRequest identity;
  std::optional<std::uint64_t> realtimeUs;
};
Result<ForkChildRequest> parseForkChild(const Json& params);

Result<std::uint16_t> parsePort(const Json& params);
/// Milliseconds of grace.
Result<std::uint64_t> parseShutdown(const Json& params);

/// "SIGTERM" and the like; 0 for what is none.
int signalNumber(std::string_view name);
std::string signalName(int number);

}  // namespace bough::guest
