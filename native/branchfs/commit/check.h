// Compares the base with what a transaction expects of it, before anything is touched. Used by base_commit, twice:
// before staging, and again just before the decision.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/commit/place.h"
#include "native/common/result.h"

namespace bough::base_commit {

/// Whether the items keep the rules of Transaction::items; else E_BAD_REQUEST.
Result<> validate(const Transaction& transaction);

/// What the check found out on the way: one for each item.
struct CheckedItem {
  Found target;   // what is at the path now
  Found parent;   // the folder that holds it
  Xattrs xattrs;  // Meta: the folder's
};

struct Checked {
  std::vector<CheckedItem> items;
  std::vector<CommitConflict> conflicts;
  std::string errorPath;  // the path of the error that `check` gave
};

/// Looks at every item. Conflicts are collected, all of them; errors (a read-only or immutable place, a mount point)
/// end it. `journal`: the journal folder, which must not be below anything that goes away. `linked`: the transaction
/// has made hard links to base files already, which moves ctimes: they are not compared.
Result<> check(Folders& folders, const Found& journal, const Transaction& transaction, bool linked, Checked& checked);

}  // namespace bough::base_commit
