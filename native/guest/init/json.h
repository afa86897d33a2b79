// nlohmann-json as bough-init uses it: nothing is thrown (there is nobody to catch in pid 1), no streams (they are
// large).
#pragma once

#ifndef JSON_NO_IO
#define JSON_NO_IO 1
#endif
#include <nlohmann/json.hpp>
#include <string>

namespace bough::guest {

using Json = nlohmann::json;

/// One line, with newline. Bytes that are no UTF-8 become U+FFFD.
inline std::string toLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace bough::guest
