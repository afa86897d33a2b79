// Swaps names: each step can be repeated after a crash, because what a name holds says whether it was done. Used by
// base_commit, forward and back.
#pragma once

#include <string>

#include "native/branchfs/model.h"
#include "native/common/result.h"

namespace bough::base_commit {

struct Place {
  int folderFd = -1;
  std::string name;
};

/// Gives `target` the file `wanted`, which is at `staged`; what was at `target` comes to `staged`. Both are on one file
/// system. Where the file system cannot exchange names, a hard link or a short absence of `target` takes its place,
/// with "<staged name>.old" in between. Done already (after a crash): nothing happens.
Result<> swapNames(const Place& staged, const Place& target, const Identity& wanted);

/// Renames to a name that must be free (EEXIST).
Result<> moveName(const Place& from, const Place& to);

/// For tests: behaves as on a file system without RENAME_EXCHANGE and RENAME_NOREPLACE.
extern bool plainRenamesOnly;

}  // namespace bough::base_commit
