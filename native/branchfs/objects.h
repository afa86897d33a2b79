// The object files of a store: one file per file content that a branch has written, `objects/ab/<id in hex>`, mode
// 0600. Views read and write them, the store removes those that no tree names. An object's bytes are all it has: owner,
// mode and xattrs of the file that a program sees live in the tree's node.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/branchfs/model.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

/// A descriptor that handles and the cache share; it stays open for whoever still holds it.
using SharedFd = std::shared_ptr<const UniqueFd>;

/// Copies `length` bytes from the start of `from` to the start of the empty file `to`: as a reflink where the file
/// systems can, else data only, so that holes stay holes. `length` beyond the end of `from` gives a hole there.
Result<> copyFileData(int from, int to, std::uint64_t length);

class Objects {
 public:
  /// Opens (and makes, mode 0700) the folder. `cachedFds`: how many descriptors stay open for the next use.
  static Result<std::unique_ptr<Objects>> open(const std::string& folder, std::size_t cachedFds = 1024);
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  /// Makes an empty object. The number comes from ChangeLog::newObject, so EEXIST is an error of the caller.
  Result<SharedFd> create(ObjectId id);
  /// Makes an object from the first `length` bytes of `from`, holes kept. On any error (ENOSPC, EDQUOT …) the object is
  /// gone again.
  Result<SharedFd> createFrom(ObjectId id, int from, std::uint64_t length);
  /// Opens an object for reading and writing.
  Result<SharedFd> get(ObjectId id);
  /// fstat of the object.
  Result<struct stat> stat(ObjectId id);
  /// Removes the file. Not there: fine. Handles that hold its descriptor keep the data.
  Result<> remove(ObjectId id);
  Result<std::uint64_t> bytesOnDisk(ObjectId id);

  /// The token that keeps an object: put it into Content::lease of every node that names the object (also of nodes read
  /// back from the log or a snapshot). One object has one token however often it is asked for.
  std::shared_ptr<const void> lease(ObjectId id);
  /// Objects whose last lease has gone since the last call. Remove them only after a ChangeLog::sync that started after
  /// this call: else a power cut could bring back a tree that names them.
  std::vector<ObjectId> takeGarbage();

  /// Calls f for each object file there is; for the sweep at start.
  Result<> forEach(const std::function<void(ObjectId)>& f) const;
  /// Makes everything written to objects so far survive a power cut (syncfs).
  Result<> syncAll() const;
  Result<struct statvfs> statfs() const;

 private:
  struct Garbage;
  struct Cached {
    SharedFd fd;
    std::list<ObjectId>::iterator age;
  };
  Objects(UniqueFd folder, std::size_t cachedFds);
  void keep(ObjectId id, const SharedFd& fd);

  UniqueFd folder_;
  std::size_t cachedFds_;
  std::mutex cacheLock_;
  std::unordered_map<ObjectId, Cached> cache_;
  std::list<ObjectId> ages_;  // least recently used first
  std::mutex leaseLock_;
  std::unordered_map<ObjectId, std::weak_ptr<const void>> leases_;
  std::shared_ptr<Garbage> garbage_;
};

}  // namespace bough
