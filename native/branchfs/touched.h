// Which paths of a tree a difference touches, in that tree's own words: a folder that was renamed there is followed.
// What is to be compared or merged by name has to be settled at these paths first. Used by Store.
#pragma once

#include <string>
#include <vector>

#include "native/branchfs/model.h"

namespace bough {

/// `target` is `before`, `after` or another descendant of what `before` comes from.
std::vector<std::string> touchedPaths(const Nodes& before, const Nodes& after, const Nodes& target);

}  // namespace bough
