// See base64.h.
#include "native/common/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace bough {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> makeValues() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (std::size_t i = 0; i < kAlphabet.size(); i++) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr std::array<std::int8_t, 256> kValues = makeValues();

}  // namespace

std::string toBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; j++) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 4; j++) {
      text.push_back(j <= have ? kAlphabet[(group >> (18 - 6 * j)) & 63] : '=');
    }
  }
  return text;
}

std::optional<std::string> fromBase64(std::string_view text) {
  for (int i = 0; i < 2 && text.ends_with('='); i++) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(group >> bits));
    group &= (1U << bits) - 1;
  }
  return bytes;
}

bool validUtf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    std::size_t more = 0;
    std::uint32_t code = first;
    std::uint32_t least = 0;
    if (first < 0x80) {
      i++;
      continue;
    }
    if (first >= 0xC2 && first <= 0xDF) {
      more = 1, code = first & 0x1FU, least = 0x80;
    } else if ((first & 0xF0U) == 0xE0) {
      more = 2, code = first & 0x0FU, least = 0x800;
    } else if (first >= 0xF0 && first <= 0xF4) {
      more = 3, code = first & 0x07U, least = 0x10000;
    } else {
      return false;
    }
    if (i + more >= bytes.size()) return false;
    for (std::size_t j = 1; j <= more; j++) {
      const auto next = static_cast<unsigned char>(bytes[i + j]);
      if ((next & 0xC0U) != 0x80) return false;
      code = code << 6 | (next & 0x3FU);
    }
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace bough
