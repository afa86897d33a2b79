// The processes that this machine forked and that still live: their names, pidfds and ends. Used by Service.
//
// On the loop's thread. A forked child forgets all of them: they are its siblings, not its children.
#pragma once

#include <sys/types.h>

#include <functional>
#include <list>
#include <string>

#include "native/common/unique_fd.h"
#include "native/vmm/io/event_loop.h"

namespace bough::vmm {

struct Child {
  std::string name;
  pid_t pid = 0;
  UniqueFd pidfd;
  bool frozen = false;
};

/// How a process ended: `exit` or, where it was killed, `signal`.
struct ChildEnd {
  std::string name;
  pid_t pid = 0;
  int exit = 0;
  int signal = 0;
};

class Children {
 public:
  explicit Children(EventLoop& loop, std::function<void(const ChildEnd&)> ended)
      : loop_(loop), ended_(std::move(ended)) {}
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Tells of its end and reaps it.
  void add(Child child);
  /// Reaps it silently when it ends.
  void addUntold(Child child);
  /// Ends it at once and reaps it silently.
  void discard(Child child);

  const std::list<Child>& living() const { return told_; }
  bool hasName(const std::string& name) const;

  /// In a forked child: forgets all. The loop was restarted.
  void becomeChild();

 private:
  void watch(std::list<Child>& list, Child child);

  EventLoop& loop_;
  std::function<void(const ChildEnd&)> ended_;
  std::list<Child> told_;
  std::list<Child> untold_;
};

}  // namespace bough::vmm
