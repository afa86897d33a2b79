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

struct Branch {
  BranchId id;
  BranchId parent;       // "base" for a branch of the base
  std::uint64_t group;   // 0: alone
  bool exclusive = false;
  std::string name;      // a person's word for it, UTF-8, may be empty
  std::int64_t createdMs = 0;
  std::atomic<BranchState> state{BranchState::Live};

  /// Shared: reading the tree, reading and writing file data. Exclusive: changing `tree` or `point`, branch points.
  /// Held for microseconds; never across a copy of file data or a sync.
  mutable std::shared_mutex lock;
  Tree tree;
  Nodes point;              // the parent's nodes at the branch point, plus what was settled since
  std::uint64_t edits = 0;  // counts changes with edits; says "the parent has not changed since"
  std::unordered_map<NodeId, NodePtr> orphans;  // unlinked but open or looked up: in memory only
  ChangeLog* log = nullptr;

  std::mutex listenersLock;
  std::vector<Invalidator*> listeners;  // transports that serve this branch

  /// Logs a change, then applies it to tree and point. The caller holds `lock` exclusively. If the log fails nothing
  /// is applied.
  Result<> commit(const Change& change);
};

}  // namespace bough
