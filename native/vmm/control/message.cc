// See message.h.
#include "native/vmm/control/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace bough::vmm {
namespace {

struct Meaning {
  std::string_view code;
  int status;
};

// Codes that begin with one of these; the first that fits counts. What is not here is the host's failure: 500.
constexpr std::array kMeanings{
    Meaning{"E_BAD_REQUEST", 400},    Meaning{"E_DESCRIPTORS", 400},    Meaning{"E_TOO_BIG", 400},
    Meaning{"E_STATE", 400},          Meaning{"E_KERNEL", 400},         Meaning{"E_COMMAND_LINE", 400},
    Meaning{"E_RAM_SIZE", 400},       Meaning{"E_VCPUS", 400},          Meaning{"E_FILE_SYSTEMS", 400},
    Meaning{"E_SAVE_TARGET", 400},    Meaning{"E_SAVED_", 400},         Meaning{"E_KVM_DENIED", 403},
    Meaning{"E_NO_METHOD", 404},      Meaning{"E_NO_MACHINE", 404},     Meaning{"E_NAME_TAKEN", 409},
    Meaning{"E_MACHINE_EXISTS", 409}, Meaning{"E_TOO_MANY_FORKS", 503}, Meaning{"E_DRAIN", 503},
    Meaning{"E_PARK", 503},           Meaning{"E_FORK", 503},           Meaning{"E_NO_MEMORY", 503},
};

Error badRequest(std::string message) { return Error{EINVAL, "E_BAD_REQUEST", std::move(message)}; }

Outgoing line(Json message, std::vector<UniqueFd> fds) {
  if (!fds.empty()) message["fds"] = fds.size();
  // Bytes that are no UTF-8 (a file name of the guest in a message) must not end the process.
  return Outgoing{message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", std::move(fds)};
}

}  // namespace

std::variant<Request, BadLine> parseRequest(std::string_view text, std::vector<UniqueFd> fds) {
  Json message = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) return BadLine{Json(), badRequest("The line is no JSON object: send one request a line.")};
  Request request;
  const auto id = message.find("id");
  if (id == message.end() || !(id->is_number() || id->is_string())) {
    return BadLine{Json(), badRequest("`id` is missing, or neither a number nor a string.")};
  }
  request.id = *id;
  const auto method = message.find("method");
  if (method == message.end() || !method->is_string()) {
    return BadLine{request.id, badRequest("`method` is missing or no string.")};
  }
  request.method = method->get<std::string>();
  if (const auto params = message.find("params"); params != message.end() && !params->is_null()) {
    if (!params->is_object()) return BadLine{request.id, badRequest("`params` must be an object.")};
    request.params = std::move(*params);
  }
  std::size_t announced = 0;
  if (const auto count = message.find("fds"); count != message.end() && !count->is_null()) {
    if (!count->is_number_unsigned()) {
      return BadLine{request.id, badRequest("`fds` must be a whole number, not negative.")};
    }
    announced = count->get<std::size_t>();
  }
  if (announced != fds.size()) {
    return BadLine{request.id,
                   Error{EINVAL, "E_DESCRIPTORS",
                         "`fds` says " + std::to_string(announced) + " descriptors and " + std::to_string(fds.size()) +
                             " came: send them with the bytes of the line, and their right number in `fds`; if that "
                             "was so, boughvm has as many open as it may have."}};
  }
  request.fds = std::move(fds);
  return request;
}

Outgoing answerLine(const Json& id, Json result, std::vector<UniqueFd> fds) {
  return line(Json{{"id", id}, {"result", std::move(result)}}, std::move(fds));
}

Outgoing errorLine(const Json& id, const Error& error) {
  const std::string code = error.code.empty() ? "E_IO" : error.code;
  const std::string message =
      error.message.empty() ? std::string("The system said: ") + std::strerror(error.errnum) + "." : error.message;
  return line(
      Json{{"id", id},
           {"error", {{"code", code}, {"message", message}, {"status", statusOf(code)}, {"errno", error.errnum}}}},
      {});
}

Outgoing eventLine(Json event, std::vector<UniqueFd> fds) { return line(std::move(event), std::move(fds)); }

int statusOf(std::string_view code) {
  const auto* found =
      std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& one) { return code.starts_with(one.code); });
  return found == kMeanings.end() ? 500 : found->status;
}

}  // namespace bough::vmm
