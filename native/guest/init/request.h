// A line as a request, and its parameters read with bounds. Used by connection.cc and requests.cc. Nothing here has an
// effect: the fuzzer calls all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/common/result.h"
#include "native/guest/init/json.h"

namespace bough::guest {

struct Request {
  std::optional<std::uint64_t> id;  // without it nobody waits for an answer
  std::string method;
  Json params = Json::object();
};

inline constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 53) - 1;  // what a double holds exactly

/// E_BAD_REQUEST for whatever is no request.
Result<Request> parseRequest(std::string_view line);

/// Reads parameters one by one and keeps the first error, so that a caller checks once at the end. After an error every
/// value is empty or the least that is allowed.
class Params {
 public:
  explicit Params(const Json& json) : json_(json) {}

  bool has(const char* key) const;
  /// A string of 1 to `most` bytes, no NUL.
  std::string text(const char* key, std::size_t most);
  std::string textOr(const char* key, std::size_t most, std::string otherwise);
  /// One of the words, as its index.
  std::size_t wordOr(const char* key, const std::vector<std::string_view>& words, std::size_t otherwise);
  std::uint64_t number(const char* key, std::uint64_t least, std::uint64_t most);
  std::uint64_t numberOr(const char* key, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise);
  std::vector<std::uint64_t> numbers(const char* key, std::size_t most, std::uint64_t largest);
  bool flag(const char* key);
  /// Base64; `most` bytes when decoded.
  std::string bytes(const char* key, std::size_t most);
  /// A string, or {"b64": …} for what is no UTF-8; no NUL.
  std::string name(const char* key, std::size_t most);
  std::vector<std::string> names(const char* key, std::size_t least, std::size_t most);
  /// {"NAME": name, …} as "NAME=value".
  std::vector<std::string> environment(const char* key, std::size_t most);
  const Json& object(const char* key);

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(const char* key, const char* why);

 private:
  const Json* find(const char* key) const;
  std::string nameOf(const char* key, const Json& json, std::size_t most);

  const Json& json_;
  std::optional<Error> error_;
};

}  // namespace bough::guest
