// See watch.h.
#include "native/branchfs/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <tuple>

namespace bough {

namespace {

constexpr std::uint32_t kNameEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::uint32_t kFileEvents = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE;
constexpr std::uint32_t kSelfEvents = IN_DELETE_SELF | IN_MOVE_SELF;
/// Names that a commit makes beside its targets: nobody may see them.
constexpr std::string_view kStagePrefix = ".bough-stage-";

}  // namespace

Watch::Watch() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (inotify_ && stop_) thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  if (!thread_.joinable()) return;
  std::uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

void Watch::listen(WatchListener* listener) {
  std::lock_guard guard(listenersLock_);
  listeners_.push_back(listener);
}

void Watch::unlisten(WatchListener* listener) {
  std::lock_guard guard(listenersLock_);
  std::erase(listeners_, listener);
}

bool Watch::add(NodeId folder, int folderFd) {
  if (!inotify_) return false;
  std::lock_guard guard(lock_);
  auto known = byFolder_.find(folder);
  if (known != byFolder_.end()) {
    known->second.count++;
    return true;
  }
  std::string path = "/proc/self/fd/" + std::to_string(folderFd);
  int descriptor =
      ::inotify_add_watch(inotify_.get(), path.c_str(), kNameEvents | kFileEvents | kSelfEvents | IN_ONLYDIR);
  if (descriptor < 0) return false;
  if (byDescriptor_.contains(descriptor)) return false;  // one folder under two ids: the first keeps it
  byDescriptor_[descriptor] = folder;
  byFolder_[folder] = Watched{descriptor, 1};
  return true;
}

void Watch::remove(NodeId folder) {
  std::lock_guard guard(lock_);
  auto known = byFolder_.find(folder);
  if (known == byFolder_.end() || --known->second.count > 0) return;
  ::inotify_rm_watch(inotify_.get(), known->second.descriptor);
  byDescriptor_.erase(known->second.descriptor);
  byFolder_.erase(known);
}

bool Watch::watches(NodeId folder) const {
  std::lock_guard guard(lock_);
  return byFolder_.contains(folder);
}

void Watch::run() {
  std::array<char, 65536> buffer{};
  std::array<pollfd, 2> wait{pollfd{inotify_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
    if (wait[1].revents) return;
    ssize_t length = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (length > 0) handle(buffer.data(), static_cast<std::size_t>(length));
  }
}

void Watch::handle(const char* data, std::size_t length) {
  // One write makes several events and a busy writer many: each name once per batch, in order of its first event.
  std::set<std::tuple<NodeId, std::string, bool>> met;
  std::vector<std::tuple<NodeId, std::string, bool>> events;  // folder, name, the name itself changed
  bool lost = false;
  bool moved = false;
  for (std::size_t at = 0; at + sizeof(inotify_event) <= length;) {
    inotify_event event{};
    std::copy_n(data + at, sizeof event, reinterpret_cast<char*>(&event));
    std::string name = event.len > 0 ? std::string(data + at + sizeof event) : std::string();
    at += sizeof event + event.len;
    if (event.mask & IN_Q_OVERFLOW) lost = true;
    if (name.starts_with(kStagePrefix)) continue;
    NodeId folder = 0;
    {
      std::lock_guard guard(lock_);
      auto known = byDescriptor_.find(event.wd);
      if (known == byDescriptor_.end()) continue;
      folder = known->second;
      if (event.mask & IN_IGNORED) {  // the folder is gone, and the kernel's watch with it
        byFolder_.erase(folder);
        byDescriptor_.erase(known);
      }
    }
    if (event.mask & (kSelfEvents | IN_IGNORED)) moved = true;
    if (event.mask & IN_IGNORED) continue;
    bool named = (event.mask & kNameEvents) != 0;
    if (met.emplace(folder, name, named).second) events.emplace_back(folder, name, named);
  }
  std::lock_guard guard(listenersLock_);
  for (WatchListener* listener : listeners_) {
    if (moved || lost) listener->foldersMoved();
    if (lost) listener->everythingChanged();
    for (const auto& [folder, name, named] : events) {
      named ? listener->nameChanged(folder, name) : listener->fileChanged(folder, name);
    }
  }
}

}  // namespace bough
