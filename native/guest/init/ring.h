// The last bytes of a process's output, numbered from its first byte: what lets a host that lost its connection go on
// where it was. Used by process.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "native/guest/init/requests.h"

namespace bough::guest {

enum class Stream : std::uint8_t { Out, Err, Terminal };

struct Piece {
  Stream stream = Stream::Out;
  std::uint64_t at = 0;
  std::string bytes;
};

/// Keeps `capacity` bytes, and the place of at most one change of stream for each 16 of them (so that a program which
/// writes single bytes to both streams in turn does not take much more memory than that).
class OutputRing {
 public:
  OutputRing(std::size_t capacity, WhenFull whenFull);

  /// How many bytes may be appended now; with WhenFull::Drop always as many as it holds.
  std::size_t room() const;
  /// Beyond `room` it grows (what a process left in its pipes when it ended); the caller bounds that.
  void append(Stream stream, std::string_view bytes);
  /// Bytes before `to` may go when room is needed.
  void release(std::uint64_t to);
  /// At most `most` bytes of one stream, from `from` or from the oldest that is kept. Empty bytes: there are none.
  Piece read(std::uint64_t from, std::size_t most) const;

  std::uint64_t from() const { return from_; }
  std::uint64_t to() const { return to_; }
  std::size_t capacity() const { return capacity_; }

 private:
  struct Run {
    std::uint64_t end;  // exclusive
    Stream stream;
  };

  std::size_t kept() const { return static_cast<std::size_t>(to_ - from_); }
  void evict(std::size_t incoming);
  void grow(std::size_t needed);

  std::size_t capacity_;
  std::size_t maxRuns_;
  WhenFull whenFull_;
  std::vector<char> store_;  // byte n lies at n % size
  std::deque<Run> runs_;
  std::uint64_t from_ = 0, to_ = 0, released_ = 0;
};

}  // namespace bough::guest
