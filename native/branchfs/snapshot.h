// Everything a store knows, in one file, with all sharing kept (docs/store-format.md). Store writes it when the log is
// long and at a clean stop, and reads it at open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/branchfs/ledger.h"
#include "native/branchfs/records.h"
#include "native/common/result.h"

namespace bough {

/// A copy of what a Ledger holds at an instant: maps are pointers, so that taking it is quick and writing it can wait.
struct LedgerCopy {
  struct BranchCopy {
    BranchId id, parent, committedInto;
    std::string name, mountAt, mountFolder, commitId;
    NodeId mountNode = kNoNode;
    std::uint64_t group = 0, edits = 0, order = 0;
    bool exclusive = false;
    std::int64_t createdMs = 0;
    BranchState state = BranchState::Live;
    Tree tree;
    Nodes point, origin;
  };
  std::vector<BranchCopy> branches;
  std::vector<CommitEntry> commits;
  Counters counters;
};

/// The caller holds every branch's lock exclusively (adopted points are folded in).
LedgerCopy copyOf(const Ledger& ledger);

/// Writes `snapshot` in the folder, whole or not at all, durable when it returns. `generation`: of the log that goes
/// on.
Result<> writeSnapshot(int folderFd, const LedgerCopy& copy, std::uint64_t generation);

/// Reads `snapshot` into an empty ledger; the generation, 0 if there is no snapshot. E_STORE_DAMAGED, E_STORE_VERSION.
Result<std::uint64_t> readSnapshot(int folderFd, Ledger& ledger, const LeaseOf& leaseOf);

}  // namespace bough
