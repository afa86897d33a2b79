// What a store knows: its branches, commits and counters. Changes only by records, the same ones at run time and at
// recovery, so that a store that opens again is what it was. Store owns one; snapshot writes and reads it whole.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "native/branchfs/branch.h"
#include "native/branchfs/records.h"
#include "native/common/result.h"

namespace bough {

inline const BranchId kBase = "base";

/// A commit that can still be undone, or, `forgotten`, one whose kept files a branch may still show.
struct CommitEntry {
  CommitFacts facts;
  Nodes before, after;                   // into a branch: its nodes
  std::uint32_t txn = 0, firstRoot = 0;  // into the base
  std::vector<std::string> items;
  bool forgotten = false;
};

class Ledger {
 public:
  /// Applies a record. At run time the caller holds the store's lock and, exclusively, the locks of all branches that
  /// the record changes. An error says that the record does not fit: a damaged store, or a bug.
  Result<> apply(const Record& record);

  BranchPtr find(const BranchId& id) const;
  /// Children in the order they were made.
  std::vector<BranchPtr> childrenOf(const BranchId& id) const;
  CommitEntry* findCommit(const std::string& id);

  std::map<BranchId, BranchPtr> branches;
  std::vector<CommitEntry> commits;  // oldest first
  Counters counters;                 // as read from the last Counters record: upper bounds
  ChangeLog* log = nullptr;          // what new branches log to

 private:
  Result<> on(const Changed& r);
  Result<> on(const BranchesMade& r);
  Result<> on(const PointMoved& r);
  Result<> on(const Rebased& r);
  Result<> on(const CommittedIntoBranch& r);
  Result<> on(const CommittedIntoBase& r);
  Result<> on(const CommitUndone& r);
  Result<> on(const CommitForgotten& r);
  Result<> on(const BranchesGone& r);
  Result<> on(const Renamed& r);
  Result<> on(const Mounted& r);
  Result<> on(const Counters& r);
  Result<> on(const Synced& r);

  void finishCommit(Branch& child, CommitEntry entry);
  void pin(const std::vector<Pin>& pins);
};

/// One more change of the files, for those who compare counts.
void countEdit(Branch& branch);

}  // namespace bough
