// All names that some inodes have in the base: a file with several names is changed under every one of them. Used by
// store when a changed file of the base has more names than the branch has met.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "native/common/result.h"

namespace bough {

/// Inode → its paths in the base, in order. Reads every folder of the base once, on the base's own file system only;
/// looks at no file. `skip`: folders not to enter, by (device, inode): mount points, the store.
Result<std::map<std::uint64_t, std::vector<std::string>>> findNames(
    int baseFd, const std::set<std::uint64_t>& inodes,
    const std::set<std::pair<std::uint64_t, std::uint64_t>>& skip = {});

}  // namespace bough
