// How often a test does the same again: up to a number on hardware, on an emulated host as often as fits into a few
// seconds. Used by the tests:  for (Rounds round(200); round.next();) { … }
#pragma once

#include "test/vm/harness/control.h"
#include "test/vm/harness/host.h"

namespace bough::vmtest {

class Rounds {
 public:
  explicit Rounds(unsigned most, Seconds whenEmulated = Seconds(5))
      : most_(most), end_(Clock::now() + (emulated() ? whenEmulated : Seconds(600))) {}

  /// At least three times, unless `most` is less.
  bool next() {
    if (done_ >= most_ || (done_ >= kLeast && Clock::now() >= end_)) return false;
    done_++;
    return true;
  }
  /// Of the round that is under way, from 0.
  unsigned index() const { return done_ - 1; }
  unsigned done() const { return done_; }

 private:
  static constexpr unsigned kLeast = 3;
  unsigned most_;
  Clock::time_point end_;
  unsigned done_ = 0;
};

}  // namespace bough::vmtest
