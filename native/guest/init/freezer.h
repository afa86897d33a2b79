// Stops and continues every process of the machine but pid 1, by the freezer of cgroup v2 (the kernel's
// Documentation/admin-guide/cgroup-v2.rst, cgroup.freeze). Used by the methods and by machine.cc.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/guest/init/loop.h"

namespace bough::guest {

/// Why processes do not run. Each is set and taken away by itself; they run when there is none.
enum class Hold : std::uint8_t { Host, Fork };

class Freezer {
 public:
  /// Microseconds that it took, or why not.
  using Frozen = std::function<void(Result<std::uint64_t>)>;

  explicit Freezer(Loop& loop) : loop_(loop) {}
  ~Freezer();
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

  /// Makes the group below the mounted cgroup2. Without it, what asks for a freeze is E_NO_CGROUP.
  Result<Done> open(const std::string& cgroupMount);
  /// The file through which a process enters the group; -1 if there is none.
  int procs() const { return procs_.get(); }

  /// Calls `then` once, when the kernel says that all are frozen, or with E_FREEZE if they are not in time: then this
  /// hold is taken away again.
  void freeze(Hold hold, Frozen then);
  Result<Done> thaw(Hold hold);
  /// Whatever holds them: they are to be ended.
  void thawAll();
  bool isHeld() const { return held_[0] || held_[1]; }
  bool isHeld(Hold hold) const { return held_[static_cast<std::size_t>(hold)]; }
  std::vector<std::string> reasons() const;

 private:
  struct Waiter {
    Hold hold;
    std::uint64_t sinceUs;
    Loop::Token timer;
    Frozen then;
  };

  Result<Done> write(bool frozen);
  bool kernelSaysFrozen() const;
  void settle();
  void late(std::uint64_t sinceUs);

  Loop& loop_;
  UniqueFd procs_, freeze_, events_;
  Loop::Token watch_ = 0;
  std::array<bool, 2> held_{};
  std::vector<Waiter> waiters_;
};

}  // namespace bough::guest
