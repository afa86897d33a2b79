// Base64 (RFC 4648, section 4), and which bytes are UTF-8 (RFC 3629). Used by the control protocols of boughfs and of
// the guest for contents and for names that are no text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bough {

std::string toBase64(std::string_view bytes);
/// Without a value: it is no base64 (padding may be missing).
std::optional<std::string> fromBase64(std::string_view text);

bool validUtf8(std::string_view bytes);

}  // namespace bough
