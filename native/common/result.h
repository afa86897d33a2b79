// What an operation gives back: a value or an error that a person can act on. Used by every native part.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

namespace bough {

/// An error. `errnum` is what a system call would answer (errno(3)); `code` is stable ("E_CONFLICT"), empty for a plain
/// errno; `message` says what failed, why and what to do.
struct Error {
  int errnum = EIO;
  std::string code;
  std::string message;
};

/// An errno as an error, for the file system's paths, where the number says it all.
inline Error sys(int errnum) { return Error{errnum, {}, {}}; }

/// An errno with what was tried: "what: strerror".
inline Error sysError(int errnum, const std::string& what) {
  return Error{errnum, {}, what + ": " + std::strerror(errnum)};
}

struct [[nodiscard]] Done {};

/// A value or an Error; the shape of C++23's std::expected.
template <typename T = Done>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }
  Error& error() { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace bough

/// Leaves the function with the error of `expr`, if it has one.
#define BOUGH_TRY(expr)                       \
  do {                                        \
    auto boughTry_ = (expr);                  \
    if (!boughTry_) return boughTry_.error(); \
  } while (false)

#define BOUGH_CONCAT_(a, b) a##b
#define BOUGH_CONCAT(a, b) BOUGH_CONCAT_(a, b)
/// `BOUGH_ASSIGN(auto fd, open(…))`: declares or assigns the value, or leaves the function with the error.
#define BOUGH_ASSIGN(target, expr)                                                                \
  auto BOUGH_CONCAT(boughResult_, __LINE__) = (expr);                                             \
  if (!BOUGH_CONCAT(boughResult_, __LINE__)) return BOUGH_CONCAT(boughResult_, __LINE__).error(); \
  target = std::move(*BOUGH_CONCAT(boughResult_, __LINE__))
