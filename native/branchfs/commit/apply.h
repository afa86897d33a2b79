// The steps after the decision: swap names, keep what was replaced, set what folders get; and all of it backwards.
// Every step looks first whether it was done, so that each function can be called again after a crash at any
// instruction. Used by base_commit, live and in recovery.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/branchfs/commit/journal.h"
#include "native/branchfs/commit/place.h"
#include "native/branchfs/commit/swap.h"
#include "native/common/result.h"

namespace bough::base_commit {

class Application {
 public:
  /// `keptFd`: the transaction's folder of kept things, also its staging place where it is on the base's file system.
  Application(Folders& folders, int keptFd, const Prepared& prepared, const Decided& decided)
      : folders_(folders), keptFd_(keptFd), prepared_(prepared), decided_(decided) {}

  /// Swaps all names and sets the folders' attributes. `strict`: a path that changed in the last instant is a conflict
  /// and ends it (the caller reverts). Otherwise, after a crash, it goes on and notes the path in `raced`.
  Result<> swapAll(bool strict);
  /// Moves what was replaced from beside the targets to `kept` and clears the staging names. After this there is no
  /// way back but undo.
  Result<> keepAll();
  /// Sets the mtimes of folders, last of all.
  void setFolderTimes();
  /// What the transaction left.
  Result<Applied> outcome();

  /// Takes back what swapAll did, as far as it came.
  Result<> revertAll();

  std::vector<CommitConflict> conflicts;
  std::vector<NotApplied> notApplied;
  std::vector<std::string> raced;
  std::string errorPath;

 private:
  struct Spot {
    std::shared_ptr<UniqueFd> folder;  // keeps place.folderFd open
    Place place;
  };
  /// No value: the folder is gone or is no folder any more.
  Result<std::optional<Spot>> targetOf(std::size_t index);
  Result<std::optional<Spot>> stagedOf(std::size_t index);

  Result<> swapOne(std::size_t index, bool strict);
  Result<> put(std::size_t index, const Place& staged, const Place& target, bool strict);
  Result<> remove(std::size_t index, const Place& staged, const Place& target, bool strict);
  Result<> setMeta(const PlannedItem& item, const FolderMeta& meta, bool strict);
  Result<> verifyOld(const PlannedItem& item, const Place& staged);
  Result<> keepOne(std::size_t index);
  Result<> revertOne(std::size_t index);
  Result<> revertPut(std::size_t index, const Place& staged, const Place& target);
  Result<> revertRemove(const Place& staged, const Place& target);
  Result<> race(const PlannedItem& item, CommitConflict::Why why, bool strict);

  Folders& folders_;
  int keptFd_;
  const Prepared& prepared_;
  const Decided& decided_;
};

/// Removes every staging name beside the targets and gives those folders their mtimes back. For a transaction that does
/// not happen.
Result<> clearStaged(Folders& folders, const Prepared& prepared);

}  // namespace bough::base_commit
