// See numbers.h.
#include "test/vm/harness/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace bough::vmtest {

std::string Numbers::bytes(std::size_t from, std::size_t size) const {
  std::string out;
  for (std::size_t line = from / kLine; out.size() < size + kLine; line++) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%016llx\n", static_cast<unsigned long long>(first + line * step));
    out += text.data();
  }
  return out.substr(from % kLine, size);
}

std::optional<std::size_t> Numbers::startOf(std::string_view text) const {
  const std::size_t newline = text.find('\n');
  if (newline == std::string_view::npos || text.size() < newline + 1 + kLine) return std::nullopt;
  std::uint64_t value = 0;
  const std::string_view digits = text.substr(newline + 1, kLine - 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (value < first || (value - first) % step != 0) return std::nullopt;
  const std::size_t place = (value - first) / step * kLine;
  if (place < newline + 1) return std::nullopt;
  return place - (newline + 1);
}

std::string Numbers::differs(std::string_view text, std::size_t from) const {
  const std::string expected = bytes(from, text.size());
  const auto [a, b] = std::mismatch(text.begin(), text.end(), expected.begin());
  if (a == text.end()) return {};
  const auto at = static_cast<std::size_t>(a - text.begin());
  const std::size_t start = at - std::min<std::size_t>(at, 2 * kLine);
  return "at byte " + std::to_string(from + at) + ", after \"" + std::string(text.substr(start, at - start)) +
         "\" came \"" + std::string(text.substr(at, 2 * kLine)) + "\" and not \"" + expected.substr(at, kLine) + "\"";
}

}  // namespace bough::vmtest
