// From a transaction to its journal: the plan that is written down before anything is touched, and the staging that it
// announces. Used by base_commit.
#pragma once

#include <string>
#include <utility>

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/commit/check.h"
#include "native/branchfs/commit/journal.h"
#include "native/branchfs/commit/stage.h"
#include "native/common/result.h"

namespace bough::base_commit {

/// Writes down what the check found. `journal`: the journal folder; what lies on another file system or mount than it
/// is staged beside its target.
Prepared plan(const Transaction& transaction, Txn undoOf, const Checked& checked, const Found& base,
              const Found& journal);

/// How many bytes a journal of this plan may need.
std::uint64_t journalBytes(const Prepared& prepared);

/// Stages everything, copies to `kept` what cannot be moved there, and makes all of it durable.
class Staging {
 public:
  Staging(Folders& folders, int keptFd, Resolve resolve)
      : folders_(folders), keptFd_(keptFd), resolve_(std::move(resolve)) {}

  Result<Decided> run(const Transaction& transaction, const Prepared& prepared);

  std::string errorPath;
  bool linked = false;  // hard links to existing files were made

 private:
  Result<std::optional<std::uint64_t>> keepCopy(std::size_t index, const PlannedItem& item, CopiedLinks& links);
  Result<bool> stage(std::size_t index, const NewNode& node, const Prepared& prepared, Stager& stager);
  Result<> makeDurable(const Prepared& prepared, bool syncEach);

  Folders& folders_;
  int keptFd_;
  Resolve resolve_;
  std::vector<std::shared_ptr<UniqueFd>> held_;  // folders with staged files that later links point to
};

}  // namespace bough::base_commit
