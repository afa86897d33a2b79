// Tells the kernel to drop what it has cached; see notifier.h.
#include "native/branchfs/fuse/notifier.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include "native/branchfs/fuse/protocol.h"

namespace bough::fuse {
namespace {

template <typename T>
void send(int device, int code, T body, const std::string& name) {
  fuse_out_header header{};
  header.error = code;  // unique 0 marks a notification; the code stands in the error's place
  std::array<iovec, 3> parts{iovec{&header, sizeof(header)}, iovec{&body, sizeof(body)},
                             iovec{const_cast<char*>(name.c_str()), name.size() + 1}};
  const int count = name.empty() ? 2 : 3;
  for (int i = 0; i < count; ++i) header.len += static_cast<std::uint32_t>(parts[static_cast<std::size_t>(i)].iov_len);
  // ENOENT: the kernel does not know it, so there is nothing to drop. Other errors: the connection has ended.
  (void)::writev(device, parts.data(), count);
}

// Attributes and data: from offset 0 to the end. For a folder the data is its listing.
void sendNode(int device, NodeId id) {
  fuse_notify_inval_inode_out body{};
  body.ino = id;
  send(device, FUSE_NOTIFY_INVAL_INODE, body, {});
}

void sendEntry(int device, NodeId parent, const std::string& name) {
  fuse_notify_inval_entry_out body{};
  body.parent = parent;
  body.namelen = static_cast<std::uint32_t>(name.size());
  send(device, FUSE_NOTIFY_INVAL_ENTRY, body, name);
}

}  // namespace

void Notifier::start(int device) {
  std::lock_guard guard(lock_);
  running_ = true;
  thread_ = std::thread([this, device] {
    ::prctl(PR_SET_NAME, "bough-inval");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    run(device);
  });
}

void Notifier::stop() {
  {
    std::lock_guard guard(lock_);
    running_ = false;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Notifier::node(NodeId id) { queue({id, {}}); }

void Notifier::entry(NodeId parent, const std::string& name) {
  if (!name.empty()) queue({parent, name});
}

void Notifier::queue(Item item) {
  std::lock_guard guard(lock_);
  if (!running_) return;
  // Bursts of changes to one file come in a row.
  if (!items_.empty() && items_.back().id == item.id && items_.back().name == item.name) return;
  items_.push_back(std::move(item));
  ++queued_;
  changed_.notify_all();
}

void Notifier::drain() {
  std::unique_lock guard(lock_);
  const std::uint64_t until = queued_;
  changed_.wait(guard, [&] { return told_ >= until || !running_; });
}

void Notifier::run(int device) {
  std::vector<Item> batch;
  std::unique_lock guard(lock_);
  while (running_) {
    changed_.wait(guard, [&] { return !running_ || !items_.empty(); });
    if (!running_) break;
    batch.swap(items_);
    guard.unlock();
    NodeId listing = kNoNode;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Item& item = batch[i];
      if (item.name.empty()) {
        sendNode(device, item.id);
        continue;
      }
      sendEntry(device, item.id, item.name);
      // A name that came or went changes the folder's times and its cached listing, once for a row of names.
      const bool last = i + 1 == batch.size() || batch[i + 1].id != item.id || batch[i + 1].name.empty();
      if (last) listing = item.id;
      if (listing != kNoNode) sendNode(device, std::exchange(listing, kNoNode));
    }
    guard.lock();
    told_ += batch.size();
    batch.clear();
    changed_.notify_all();
  }
}

}  // namespace bough::fuse
