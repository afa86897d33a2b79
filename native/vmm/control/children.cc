// See children.h.
#include "native/vmm/control/children.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace bough::vmm {

Children::~Children() {
  for (const auto* list : {&told_, &untold_}) {
    for (const Child& child : *list) loop_.unwatch(child.pidfd.get());
  }
}

void Children::add(Child child) { watch(told_, std::move(child)); }

void Children::addUntold(Child child) { watch(untold_, std::move(child)); }

void Children::discard(Child child) {
  ::syscall(SYS_pidfd_send_signal, child.pidfd.get(), SIGKILL, nullptr, 0);
  watch(untold_, std::move(child));
}

bool Children::hasName(const std::string& name) const {
  return std::any_of(told_.begin(), told_.end(), [&](const Child& child) { return child.name == name; });
}

void Children::watch(std::list<Child>& list, Child child) {
  list.push_back(std::move(child));
  const auto place = std::prev(list.end());
  // A watch that cannot be made leaves a zombie at worst; the child itself is sound.
  [[maybe_unused]] const auto watched = loop_.watch(place->pidfd.get(), EPOLLIN, [this, &list, place](std::uint32_t) {
    siginfo_t info{};
    if (::waitid(P_PIDFD, static_cast<id_t>(place->pidfd.get()), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
      return;
    }
    ChildEnd end{place->name, place->pid, 0, 0};
    (info.si_code == CLD_EXITED ? end.exit : end.signal) = info.si_status;
    loop_.unwatch(place->pidfd.get());
    const bool tell = &list == &told_;
    list.erase(place);
    if (tell) ended_(end);
  });
}

void Children::becomeChild() {
  told_.clear();
  untold_.clear();
}

}  // namespace bough::vmm
