// libFuzzer: arbitrary bytes on the connection of pid 1. The first byte says in what pieces they come. Every line is
// parsed, and its parameters are read as those of every method, as if it had been that one.
#include <cstdint>
#include <string>
#include <string_view>

#include "native/guest/init/command_line.h"
#include "native/guest/init/framing.h"
#include "native/guest/init/request.h"
#include "native/guest/init/requests.h"

namespace {

using namespace bough::guest;

template <typename T>
void use(const bough::Result<T>& result) {
  // An error is a request's answer: it has a code and says something.
  if (!result && (result.error().code.empty() || result.error().message.empty())) __builtin_trap();
}

void readAsEverything(const Json& params) {
  use(parseExec(params));
  use(parsePty(params));
  use(parseAttach(params));
  use(parseAck(params));
  use(parseInput(params));
  use(parseResize(params));
  use(parseSignal(params));
  use(parseProcess(params));
  use(parseIdentity(params));
  use(parseReseed(params));
  use(parseClock(params));
  use(parseForkChild(params));
  use(parsePort(params));
  use(parseShutdown(params));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} * data[0] + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  LineReader lines;
  std::size_t taken = 0;
  for (std::size_t at = 0; at < bytes.size() && !lines.tooLong(); at += piece) {
    lines.feed(bytes.substr(at, piece));
    while (const auto line = lines.next()) {
      taken += line->size() + 1;
      if (line->size() >= kLineLimit) __builtin_trap();
      const auto request = parseRequest(*line);
      use(request);
      if (request) readAsEverything(request->params);
    }
  }
  if (taken + lines.takeRest().size() > bytes.size()) __builtin_trap();
  parseCommandLine(bytes);
  return 0;
}
