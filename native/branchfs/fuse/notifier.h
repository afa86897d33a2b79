// Tells the kernel to drop what it has cached. The kernel takes the inode's lock for it, which a program may hold while
// it waits for an answer of ours: so no worker may do this, a thread of its own does. Used by Mount.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "native/branchfs/file_system.h"

namespace bough::fuse {

class Notifier final : public Invalidator {
 public:
  Notifier() = default;
  ~Notifier() override { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// `device` stays open until stop.
  void start(int device);
  /// Lets what is being told end, drops the rest. Workers must still serve meanwhile.
  void stop();

  void node(NodeId id) override;
  void entry(NodeId parent, const std::string& name) override;
  /// Waits until what was queued before has been told.
  void drain();

 private:
  struct Item {
    NodeId id;
    std::string name;  // empty: the node itself
  };
  void queue(Item item);
  void run(int device);

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Item> items_;
  std::uint64_t queued_ = 0, told_ = 0;
  bool running_ = false;
  std::thread thread_;
};

}  // namespace bough::fuse
