// What guests write that count: lines of 16 digits, each a step more than the last. Used by the tests to find the very
// byte at which a machine became two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bough::vmtest {

struct Numbers {
  std::uint64_t first = 0;
  std::uint64_t step = 1;
  static constexpr std::size_t kLine = 17;

  /// `size` bytes of the sequence from its byte `from` on.
  std::string bytes(std::size_t from, std::size_t size) const;
  /// At which byte of the sequence `text` begins, by its first whole line. Nothing if it has none, or one of other
  /// numbers.
  std::optional<std::size_t> startOf(std::string_view text) const;
  /// What is not right with `text` as the sequence from its byte `from` on; empty if all is.
  std::string differs(std::string_view text, std::size_t from) const;
};

}  // namespace bough::vmtest
