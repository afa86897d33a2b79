// Bytes out and in: varints, strings, fixed-width integers, for a store's records and snapshot (docs/store-format.md).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bough {

/// Appends to a string that it owns.
class Encoder {
 public:
  void byte(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void flag(bool value) { byte(value ? 1 : 0); }
  /// LEB128.
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      byte(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7;
    }
    byte(static_cast<std::uint8_t>(value));
  }
  /// Zig-zag, then LEB128.
  void signedNumber(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    number((bits << 1) ^ (value < 0 ? ~0ULL : 0ULL));
  }
  void fixed32(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) byte(static_cast<std::uint8_t>(value >> shift));
  }
  void bytes(std::string_view value) {
    number(value.size());
    out_.append(value);
  }
  void raw(std::string_view value) { out_.append(value); }

  std::size_t size() const { return out_.size(); }
  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }
  void clear() { out_.clear(); }

 private:
  std::string out_;
};

/// Reads what Encoder wrote. Once something does not fit, `ok` is false for good and every value is zero or empty, so
/// that a caller checks once at the end. Never reads outside its bytes, whatever they are.
class Decoder {
 public:
  explicit Decoder(std::string_view in) : in_(in) {}

  std::uint8_t byte() {
    if (in_.empty()) return fail();
    const auto value = static_cast<std::uint8_t>(in_.front());
    in_.remove_prefix(1);
    return value;
  }
  bool flag() {
    const std::uint8_t value = byte();
    if (value > 1) fail();
    return value == 1;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      if (shift == 63 && next > 1) return fail();
      value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
      if (next < 0x80) return value;
    }
    return fail();
  }
  std::int64_t signedNumber() {
    const std::uint64_t bits = number();
    return static_cast<std::int64_t>((bits >> 1) ^ (bits & 1 ? ~0ULL : 0ULL));
  }
  std::uint32_t number32() {
    const std::uint64_t value = number();
    if (value > UINT32_MAX) return fail();
    return static_cast<std::uint32_t>(value);
  }
  std::uint32_t fixed32() {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) value |= static_cast<std::uint32_t>(byte()) << shift;
    return value;
  }
  std::string bytes() { return std::string(view()); }
  std::string_view view() {
    const std::uint64_t size = number();
    if (size > in_.size()) {
      fail();
      return {};
    }
    std::string_view value = in_.substr(0, size);
    in_.remove_prefix(size);
    return value;
  }
  /// A count of things that follow, each at least one byte long: larger than what is left cannot be right.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > in_.size()) return fail();
    return value;
  }

  bool ok() const { return ok_; }
  bool atEnd() const { return in_.empty(); }
  std::uint8_t fail() {
    ok_ = false;
    in_ = {};
    return 0;
  }

 private:
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace bough
