// Watches base folders with inotify for changes from outside, so that what the kernel has cached of them can be
// dropped. One per Base; every View of a branch listens. A View holds a watch on each base folder below which its
// kernel knows something; where no watch can be had (limits, file system) it tells the kernel to ask again after a
// second.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "native/branchfs/model.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

/// Called from the watch's thread without locks held. `folder` is the id of the base folder.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  /// A name came, went or means another file.
  virtual void nameChanged(NodeId folder, const std::string& name) = 0;
  /// A file's data or attributes changed (name empty: the folder itself).
  virtual void fileChanged(NodeId folder, const std::string& name) = 0;
  /// Watched folders were moved or removed: another folder may stand where they stood.
  virtual void foldersMoved() = 0;
  /// Events were lost: anything may have changed.
  virtual void everythingChanged() = 0;
};

class Watch {
 public:
  /// Without inotify (limit of instances) it works, but never watches.
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void listen(WatchListener* listener);
  /// After the return the listener is not called any more.
  void unlisten(WatchListener* listener);

  /// Watches the folder that `folderFd` (O_PATH will do) stands for; counted. False: it cannot be watched.
  bool add(NodeId folder, int folderFd);
  void remove(NodeId folder);
  bool watches(NodeId folder) const;

 private:
  struct Watched {
    int descriptor = -1;
    std::uint32_t count = 0;
  };
  void run();
  void handle(const char* data, std::size_t length);

  UniqueFd inotify_;
  UniqueFd stop_;
  mutable std::mutex lock_;
  std::unordered_map<NodeId, Watched> byFolder_;
  std::unordered_map<int, NodeId> byDescriptor_;
  std::mutex listenersLock_;  // held while listeners are called
  std::vector<WatchListener*> listeners_;
  std::thread thread_;
};

}  // namespace bough
