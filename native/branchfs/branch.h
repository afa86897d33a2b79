// A branch: its tree, what it started from, its state and its lock. Store owns branches; a View works on one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/branchfs/change.h"
#include "native/branchfs/file_system.h"
#include "native/branchfs/model.h"

namespace bough {

enum class BranchState : std::uint8_t { Live, Committed, Superseded };

/// Where a change goes so that it outlives the process: the log. `append` writes one record (write(2), so it survives
/// SIGKILL); `sync` makes all records so far survive a power cut (fdatasync).
class ChangeLog {
 public:
  virtual ~ChangeLog() = default;
  virtual Result<> append(const BranchId&, const Change&) = 0;
  virtual Result<> sync() = 0;
  virtual NodeId newNode() = 0;      // thread-safe, never reused, also not after a crash
  virtual ObjectId newObject() = 0;  // likewise
};

/// What a child had settled when its parent took its tree whole: the difference of the two, not yet in the parent's
/// point. Folding it in costs as much as it is large, so that waits until somebody needs the point (foldAdopted).
struct AdoptedPoint {
  Nodes settled;    // the child's point
  Nodes unsettled;  // the parent's tree as the child's point had begun
};

struct Branch {
  BranchId id;
  BranchId parent;          // "base" for a branch of the base
  std::uint64_t group = 0;  // 0: alone
  bool exclusive = false;
  std::string name;  // a person's word for it, UTF-8, may be empty
  std::int64_t createdMs = 0;
  std::atomic<BranchState> state{BranchState::Live};

  /// Shared: reading the tree, reading and writing file data. Exclusive: changing `tree` or `point`, branch points.
  /// Held for microseconds; never across a copy of file data or a sync.
  mutable std::shared_mutex lock;
  Tree tree;
  Nodes point;                                  // the parent's nodes at the branch point, plus what was settled since
  std::uint64_t edits = 0;                      // counts changes with edits; says "the parent has not changed since"
  std::atomic<std::uint64_t> writes{0};         // counts changes of own objects in place, which no record tells of
  std::vector<AdoptedPoint> adopted;            // belongs to `point`
  std::unordered_map<NodeId, NodePtr> orphans;  // unlinked but open or looked up: in memory only
  ChangeLog* log = nullptr;

  std::mutex listenersLock;
  std::vector<Invalidator*> listeners;  // transports that serve this branch

  /// Logs a change, then applies it to tree and point. The caller holds `lock` exclusively. If the log fails nothing
  /// is applied. EROFS when the branch is not live.
  Result<> commit(const Change& change);
  /// Brings `point` up to date with `adopted`. The caller holds `lock` exclusively.
  void foldAdopted();
  /// Grows with every change of the files; equal: a diff read earlier still holds. Any lock or none.
  std::uint64_t changes() const {
    return editsSeen.load(std::memory_order_relaxed) + writes.load(std::memory_order_relaxed);
  }

  // The store's own, guarded by its lock.
  std::uint64_t order = 0;     // of making
  std::string mountAt;         // where it is mounted, and again after a restart; empty: nowhere
  std::string mountFolder;     // the folder that the mount shows, by the path it had; empty: all of the branch
  NodeId mountNode = kNoNode;  // its node, if the tree had it then
  BranchId committedInto;      // state Committed
  std::string commitId;        // state Committed or after a partial commit: the last one
  Nodes origin;                // the parent's nodes at the branch point as they were: is the parent still the same?
  std::atomic<std::uint64_t> editsSeen{0};  // `edits` for readers without the lock
};
using BranchPtr = std::shared_ptr<Branch>;

}  // namespace bough
