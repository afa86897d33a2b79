// Extended attributes of a name, whatever its kind, without following it. Used by stage (setting), check (comparing)
// and undo (reading).
#pragma once

#include <string>
#include <vector>

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/model.h"
#include "native/common/result.h"

namespace bough::base_commit {

/// All of them that the system shows. A file system without xattrs has none. `name` empty: the folder itself.
Result<Xattrs> readXattrs(int folderFd, const std::string& name);

/// Makes them exactly `wanted`. What the system adds by itself ("security.…") stays unless `wanted` has another value.
/// What it refuses is added to `notApplied` under `path`; only an I/O error is an error.
Result<> writeXattrs(int folderFd, const std::string& name, const Xattrs& wanted, const std::string& path,
                     std::vector<NotApplied>& notApplied);

}  // namespace bough::base_commit
