// One message of the control protocol (docs/boughvm-protocol.md) as a value: a request taken from a line with its
// descriptors, an answer or event put into a line. Knows no sockets and no machine. Used by Channel, Server and the
// methods.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::vmm {

using Json = nlohmann::json;

/// A line to send, and the descriptors that go with it.
struct Outgoing {
  std::string line;  // with the newline
  std::vector<UniqueFd> fds;
};

struct Request {
  Json id;  // a number or a string; null where the line had none that can be answered
  std::string method;
  Json params = Json::object();
  std::vector<UniqueFd> fds;
};

/// Why a line is no request, with what an answer needs.
struct BadLine {
  Json id;
  Error error;
};

/// Takes the descriptors that came with the line; in the error case they are closed. Errors: E_BAD_REQUEST,
/// E_DESCRIPTORS.
std::variant<Request, BadLine> parseRequest(std::string_view line, std::vector<UniqueFd> fds);

Outgoing answerLine(const Json& id, Json result, std::vector<UniqueFd> fds = {});
Outgoing errorLine(const Json& id, const Error& error);
Outgoing eventLine(Json event, std::vector<UniqueFd> fds = {});

/// What a code means in the field's numbers: 400, 403, 404, 409, 500, 503.
int statusOf(std::string_view code);

}  // namespace bough::vmm
