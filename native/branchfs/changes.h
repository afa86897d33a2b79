// The difference of two trees as a person reads it: by path, with renames. Each change knows which nodes and names it
// consists of, so that it can be carried over, taken back or left alone by itself. Used by diff, commit, revert, take.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "native/branchfs/delta.h"
#include "native/branchfs/model.h"
#include "native/branchfs/node_compare.h"
#include "native/branchfs/store_types.h"

namespace bough {

struct PathChange {
  std::string path;
  ChangeKind kind = ChangeKind::Modified;
  std::string from;      // Renamed
  std::string was;       // where `before` had its name: differs from `path` also below a renamed folder
  bool sameNode = true;  // Renamed: it is the very node; false: a file of equal content
  NodePtr before, after;
  NodeId beforeId = kNoNode, afterId = kNoNode;
  NodeDifference what;
  /// A folder that came or went with things in it, which are changes of their own: not shown, but part of the truth.
  bool implied = false;
  std::vector<std::pair<NodeId, std::string>> names;  // (folder, name) that differ
  std::vector<NodeId> nodes;                          // that differ
};

/// All changes, sorted by path; the implied ones too.
std::vector<PathChange> changesBetween(const Nodes& before, const Nodes& after, const NodeCompare& compare);

/// How many of them a person sees.
std::size_t shownCount(const std::vector<PathChange>& changes);

/// The nodes and names of some changes: what a partial commit, a revert or a take touches.
struct Selection {
  std::set<std::pair<NodeId, std::string>> names;
  std::set<NodeId> nodes;
  std::size_t shown = 0;  // changes a person sees among them
};
/// Changes at or below `paths` (or renamed from there), with the new folders they need.
Selection select(const std::vector<PathChange>& changes, const std::vector<std::string>& paths);

/// As the diff shows it; reads the data of both sides for `binary` and `lineEndingOnly`.
FileChange describe(const PathChange& change, const NodeCompare& compare);

}  // namespace bough
