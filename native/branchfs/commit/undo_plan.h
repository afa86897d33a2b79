// The transaction that takes another one back: made from what that one kept. Used by base_commit.
#pragma once

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/commit/journal.h"
#include "native/common/result.h"

namespace bough::base_commit {

/// `undone`: a complete journal; `keptFd`: its folder of kept things; `folders`: of the base, to see whether a folder's
/// mtime is still the one that the transaction left.
Result<std::vector<Item>> planUndo(const Journal& undone, int keptFd, Folders& folders);

}  // namespace bough::base_commit
