// What a guest writes: the reading end of a machine's console pipe. Used by Vm and the tests.
//
// A thread reads all consoles all the time, as a person's terminal would: a guest that writes while its test does
// something else must not fill the pipe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "native/common/unique_fd.h"
#include "test/vm/harness/control.h"

namespace bough::vmtest {

class Console {
 public:
  Console();
  Console(Console&&) noexcept = default;
  Console& operator=(Console&&) noexcept;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  /// The writing end, to be handed to a machine. It stays open here until letGo().
  int writeEnd() const { return write_.get(); }
  void letGo() { write_.reset(); }

  /// Everything from place `from` on, with what is in the pipe at this moment.
  std::string text(std::size_t from = 0);
  std::size_t size();
  /// Waits until `wanted` has been written at or behind `from`; the place behind it. Throws with the end of what was
  /// written.
  std::size_t waitFor(std::string_view wanted, std::size_t from = 0, Seconds deadline = kDeadline);
  /// Waits until there is more than `size` bytes.
  void waitForMore(std::size_t size, Seconds deadline = kDeadline);
  /// The line that begins at `from`; waits for it. `from` moves behind it. (A fork may fall into a line: skip what a
  /// child writes first with waitFor("\n").)
  std::string line(std::size_t& from, Seconds deadline = kDeadline);
  /// Waits until all writing ends are closed: the machine is gone.
  void waitForEnd(Seconds deadline = kDeadline);

  /// Shared with the thread that reads.
  struct State;

 private:
  std::shared_ptr<State> state_;
  UniqueFd write_;
};

}  // namespace bough::vmtest
