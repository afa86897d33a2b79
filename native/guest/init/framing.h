// Bytes of a connection to lines, each bounded. Used by connection.cc; fuzzed by fuzz_guest_framing.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace bough::guest {

/// The longest line of the protocol, in bytes with its newline.
inline constexpr std::size_t kLineLimit = 256 * 1024;

class LineReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }

  /// The next whole line without its newline; empty lines are left out.
  std::optional<std::string> next() {
    while (true) {
      const std::size_t end = buffer_.find('\n', looked_);
      if (end == std::string::npos) {
        looked_ = buffer_.size();
        compact();
        return std::nullopt;
      }
      std::string line = buffer_.substr(start_, end - start_);
      start_ = looked_ = end + 1;
      if (line.size() + 1 > kLineLimit) {
        tooLong_ = true;
        return std::nullopt;
      }
      if (!line.empty()) return line;
    }
  }

  /// A line was, or the one that is coming already is, over the limit. Nothing after it can be trusted.
  bool tooLong() const { return tooLong_ || looked_ - start_ >= kLineLimit; }

  /// What came after the lines that were taken, for who takes the connection over.
  std::string takeRest() {
    std::string rest = buffer_.substr(start_);
    buffer_.clear();
    start_ = looked_ = 0;
    return rest;
  }

 private:
  /// Moves what is left to the front, once per piece that was fed and not once per line.
  void compact() {
    if (start_ == 0) return;
    buffer_.erase(0, start_);
    looked_ -= start_;
    start_ = 0;
  }

  std::string buffer_;
  std::size_t start_ = 0;   // of the next line
  std::size_t looked_ = 0;  // no newline between start_ and here
  bool tooLong_ = false;
};

}  // namespace bough::guest
