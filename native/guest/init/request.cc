// See request.h.
#include "native/guest/init/request.h"

#include <algorithm>
#include <utility>

#include "native/common/base64.h"

namespace bough::guest {
namespace {

constexpr int kMaxDepth = 8;

Error bad(std::string message) { return Error{EINVAL, "E_BAD_REQUEST", std::move(message)}; }

/// Before parsing: a megabyte of brackets would become a tree of a million nodes.
bool nestedTooDeep(std::string_view line) {
  int depth = 0;
  bool inString = false;
  for (std::size_t i = 0; i < line.size(); i++) {
    const char c = line[i];
    if (inString) {
      if (c == '\\') {
        i++;
      } else if (c == '"') {
        inString = false;
      }
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      depth--;
    }
  }
  return false;
}

bool isNumber(const Json& json, std::uint64_t most) {
  return json.is_number_unsigned() && *json.get_ptr<const Json::number_unsigned_t*>() <= most;
}

}  // namespace

Result<Request> parseRequest(std::string_view line) {
  if (nestedTooDeep(line)) return bad("The request is nested more than 8 deep.");
  Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (json.is_discarded()) return bad("The line is no JSON.");
  if (!json.is_object()) return bad("The request is no object.");
  Request request;
  if (const auto id = json.find("id"); id != json.end()) {
    if (!isNumber(*id, kMaxNumber)) return bad("`id` must be a whole number, not negative, below 2^53.");
    request.id = *id->get_ptr<const Json::number_unsigned_t*>();
  }
  const auto method = json.find("method");
  if (method == json.end() || !method->is_string()) return bad("`method` is missing or no string.");
  request.method = *method->get_ptr<const std::string*>();
  if (request.method.size() > 64) return bad("`method` is longer than 64 bytes.");
  if (const auto params = json.find("params"); params != json.end()) {
    if (!params->is_object()) return bad("`params` is no object.");
    request.params = std::move(*params);
  }
  return request;
}

const Json* Params::find(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool Params::has(const char* key) const { return find(key) != nullptr; }

void Params::fail(const char* key, const char* why) {
  if (!error_) error_ = bad(std::string("`") + key + "` " + why + ".");
}

std::string Params::text(const char* key, std::size_t most) {
  const Json* value = find(key);
  const std::string* text = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  if (text == nullptr || text->empty() || text->size() > most || text->find('\0') != std::string::npos) {
    fail(key, "is missing, no string, empty or too long");
    return {};
  }
  return *text;
}

std::string Params::textOr(const char* key, std::size_t most, std::string otherwise) {
  return has(key) ? text(key, most) : std::move(otherwise);
}

std::size_t Params::wordOr(const char* key, const std::vector<std::string_view>& words, std::size_t otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (const auto* text = value->get_ptr<const std::string*>()) {
    const auto found = std::find(words.begin(), words.end(), *text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  }
  fail(key, "is none of the words that it may be");
  return otherwise;
}

std::uint64_t Params::number(const char* key, std::uint64_t least, std::uint64_t most) {
  const Json* value = find(key);
  if (value == nullptr || !isNumber(*value, most) || *value->get_ptr<const Json::number_unsigned_t*>() < least) {
    fail(key, "is missing, no whole number or out of its bounds");
    return least;
  }
  return *value->get_ptr<const Json::number_unsigned_t*>();
}

std::uint64_t Params::numberOr(const char* key, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) {
  return has(key) ? number(key, least, most) : otherwise;
}

std::vector<std::uint64_t> Params::numbers(const char* key, std::size_t most, std::uint64_t largest) {
  std::vector<std::uint64_t> out;
  const Json* value = find(key);
  if (value == nullptr) return out;
  if (!value->is_array() || value->size() > most) {
    fail(key, "is no list, or too long");
    return out;
  }
  for (const Json& item : *value) {
    if (!isNumber(item, largest)) {
      fail(key, "holds what is no whole number, or one out of its bounds");
      return {};
    }
    out.push_back(*item.get_ptr<const Json::number_unsigned_t*>());
  }
  return out;
}

bool Params::flag(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail(key, "must be true or false");
  return value->is_boolean() && *value->get_ptr<const bool*>();
}

std::string Params::bytes(const char* key, std::size_t most) {
  const Json* value = find(key);
  const std::string* text = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  auto bytes = text == nullptr ? std::nullopt : fromBase64(*text);
  if (!bytes || bytes->size() > most) {
    fail(key, "is missing, no base64 or too long");
    return {};
  }
  return std::move(*bytes);
}

std::string Params::nameOf(const char* key, const Json& json, std::size_t most) {
  std::optional<std::string> name;
  if (const auto* text = json.get_ptr<const std::string*>()) {
    name = *text;
  } else if (json.is_object() && json.size() == 1) {
    const auto b64 = json.find("b64");
    if (b64 != json.end() && b64->is_string()) name = fromBase64(*b64->get_ptr<const std::string*>());
  }
  if (!name || name->size() > most || name->find('\0') != std::string::npos) {
    fail(key, "holds what is no name (a string, or {\"b64\":…}), or one that is too long");
    return {};
  }
  return std::move(*name);
}

std::string Params::name(const char* key, std::size_t most) {
  const Json* value = find(key);
  if (value == nullptr) {
    fail(key, "is missing");
    return {};
  }
  return nameOf(key, *value, most);
}

std::vector<std::string> Params::names(const char* key, std::size_t least, std::size_t most) {
  const Json* value = find(key);
  if (value == nullptr || !value->is_array() || value->size() < least || value->size() > most) {
    fail(key, "is missing, no list, too short or too long");
    return {};
  }
  std::vector<std::string> out;
  out.reserve(value->size());
  for (const Json& item : *value) out.push_back(nameOf(key, item, kMaxNumber));
  return out;
}

std::vector<std::string> Params::environment(const char* key, std::size_t most) {
  const Json* value = find(key);
  if (value == nullptr || !value->is_object() || value->size() > most) {
    fail(key, "is missing, no object or too large");
    return {};
  }
  std::vector<std::string> out;
  out.reserve(value->size());
  for (const auto& [name, item] : value->items()) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      fail(key, "holds a name that is empty or has `=` or NUL in it");
      return {};
    }
    out.push_back(name + "=" + nameOf(key, item, kMaxNumber));
  }
  return out;
}

const Json& Params::object(const char* key) {
  static const Json kEmpty = Json::object();
  const Json* value = find(key);
  if (value != nullptr && value->is_object()) return *value;
  fail(key, "is missing or no object");
  return kEmpty;
}

}  // namespace bough::guest
