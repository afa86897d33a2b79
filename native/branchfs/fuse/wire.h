// Reading a request and writing its answer, every length checked: the bytes may come from a hostile guest. Used by the
// dispatcher's operations.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace bough::fuse {

/// Walks over a request's body. Structures are copied out, so that alignment and later changes of shared memory do not
/// matter.
class RequestReader {
 public:
  explicit RequestReader(std::span<const std::byte> body) : body_(body) {}

  template <typename T>
  std::optional<T> take() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (body_.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, body_.data(), sizeof(T));
    body_ = body_.subspan(sizeof(T));
    return value;
  }

  /// A string that ends with NUL inside the body.
  std::optional<std::string_view> string() {
    const void* end = std::memchr(body_.data(), 0, body_.size());
    if (body_.empty() || end == nullptr) return std::nullopt;
    const auto length = static_cast<std::size_t>(static_cast<const std::byte*>(end) - body_.data());
    std::string_view text(reinterpret_cast<const char*>(body_.data()), length);
    body_ = body_.subspan(length + 1);
    return text;
  }

  /// The name of a folder's entry: not empty, no slash, neither "." nor "..".
  std::optional<std::string_view> name() {
    auto text = string();
    if (!text || text->empty() || *text == "." || *text == ".." || text->find('/') != std::string_view::npos)
      return std::nullopt;
    return text;
  }

  std::optional<std::span<const std::byte>> bytes(std::size_t length) {
    if (body_.size() < length) return std::nullopt;
    auto part = body_.first(length);
    body_ = body_.subspan(length);
    return part;
  }

 private:
  std::span<const std::byte> body_;
};

/// Fills an answer's body. An operation that does not fit its own answer is a bug in the caller's sizes: `put` answers
/// false and the operation gives EIO.
class AnswerWriter {
 public:
  explicit AnswerWriter(std::span<std::byte> space) : space_(space) {}

  template <typename T>
  bool put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return append(std::as_bytes(std::span(&value, 1)));
  }
  bool append(std::span<const std::byte> data) {
    if (space_.size() - used_ < data.size()) return false;
    if (!data.empty()) std::memcpy(space_.data() + used_, data.data(), data.size());
    used_ += data.size();
    return true;
  }
  bool append(std::string_view text) { return append(std::as_bytes(std::span(text.data(), text.size()))); }
  bool pad(std::size_t length) {
    if (space_.size() - used_ < length) return false;
    std::memset(space_.data() + used_, 0, length);
    used_ += length;
    return true;
  }
  /// Free space to write into; `advance` says how much was written.
  std::span<std::byte> rest() const { return space_.subspan(used_); }
  void advance(std::size_t length) { used_ += length; }
  std::size_t used() const { return used_; }

 private:
  std::span<std::byte> space_;
  std::size_t used_ = 0;
};

}  // namespace bough::fuse
