// See merge.h.
#include "native/branchfs/merge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "native/branchfs/delta.h"

namespace bough {
namespace {

NodePtr nodeIn(const Nodes& nodes, NodeId id) {
  const NodePtr* found = id == kNoNode ? nullptr : nodes.find(id);
  return found ? *found : nullptr;
}
bool isFolder(const NodePtr& node) { return node && node->kind == Kind::Directory; }

class Merger {
 public:
  Merger(const MergeInput& input, const NodeCompare& compare)
      : in_(input),
        compare_(compare),
        delta_(deltaOf(input.point, input.tree)),
        pointNames_(input.point),
        treeNames_(input.tree),
        theirNames_(input.theirs) {}

  Merge run() {
    for (const NodeDelta& one : delta_.nodes) {
      if (!in_.only || in_.only->nodes.contains(one.id)) changed_.insert(one.id);
    }
    for (const EntryDelta& entry : delta_.entries) {
      if (!in_.only || in_.only->names.contains({entry.dir, entry.name})) name(entry);
    }
    for (const NodeDelta& node : delta_.nodes) {
      if (changed_.contains(node.id)) this->node(node);
    }
    Merge result;
    result.edits = std::move(puts_);
    result.edits.insert(result.edits.end(), entries_.begin(), entries_.end());
    result.edits.insert(result.edits.end(), drops_.begin(), drops_.end());
    result.result = in_.theirs;
    bough::apply(result.result, result.edits);
    if (conflicts_.empty()) checkFolders(result.result);
    for (auto& [path, conflict] : conflicts_) result.conflicts.push_back(std::move(conflict));
    return result;
  }

 private:
  // ---- Where things of the branch are in theirs

  std::optional<NodeId> entryOf(NodeId dir, const std::string& name) const {
    const NodePtr folder = nodeIn(in_.theirs, dir);
    const NodeId* child = isFolder(folder) ? folder->entries.find(name) : nullptr;
    return child ? std::optional(*child) : std::nullopt;
  }
  bool hasNames(NodeId id) const { return id == kRootNode || !theirNames_.of(id).empty(); }

  /// The folder of theirs that stands for a folder of the branch; without a value: there is none any more.
  std::optional<NodeId> folder(NodeId id, int depth = 0) {
    if (id == kRootNode) return id;
    if (const auto known = folders_.find(id); known != folders_.end()) return known->second;
    std::optional<NodeId> found;
    const bool isNew = !in_.point.contains(id);
    const auto& places = isNew ? treeNames_.of(id) : pointNames_.of(id);
    if (!isNew && isFolder(nodeIn(in_.theirs, id)) && hasNames(id)) {
      found = id;
    } else if (!places.empty() && depth < 4096) {
      const auto parent = folder(places.front().first, depth + 1);
      const NodeId there = parent ? entryOf(*parent, places.front().second).value_or(kNoNode) : kNoNode;
      // A new folder in the place of one that the branch took away is another folder; in a place that was free it is
      // the same one that theirs has made there.
      const NodePtr dirBefore = isNew ? nodeIn(in_.point, places.front().first) : nullptr;
      const NodeId* replaced = isFolder(dirBefore) ? dirBefore->entries.find(places.front().second) : nullptr;
      const bool instead = replaced && *replaced != kNoNode;
      if (isFolder(nodeIn(in_.theirs, there)) && !instead) {
        found = there;
      } else if (isNew) {
        found = id;  // it comes along
      }
    } else if (isNew) {
      found = id;
    }
    folders_.emplace(id, found);
    return found;
  }

  /// Likewise for any node that the point has.
  std::optional<NodeId> counterpart(NodeId id) {
    const NodePtr node = nodeIn(in_.point, id);
    if (!node) return std::nullopt;
    if (node->kind == Kind::Directory) return folder(id);
    if (in_.theirs.contains(id) && hasNames(id)) return id;
    for (const Names::Place& place : pointNames_.of(id)) {
      const auto parent = folder(place.first);
      const auto there = parent ? entryOf(*parent, place.second) : std::nullopt;
      if (there && *there != kNoNode && !isFolder(nodeIn(in_.theirs, *there))) return there;
    }
    return std::nullopt;
  }

  // ---- Conflicts

  std::string pathOf(NodeId dir, const std::string& name) const {
    if (auto path = treeNames_.path(dir, name)) return *path;
    if (auto path = pointNames_.path(dir, name)) return *path;
    return name;
  }
  std::string pathOf(NodeId id) const {
    if (auto path = treeNames_.path(id)) return *path;
    return pointNames_.path(id).value_or(std::string());
  }
  void conflict(const std::string& path, ConflictReason reason, NodePtr base, NodePtr ours, NodePtr theirs) {
    if (ours && theirs && ours->kind != theirs->kind) reason = ConflictReason::Type;
    conflicts_.emplace(path, MergeConflict{path, reason, std::move(base), std::move(ours), std::move(theirs)});
  }

  // ---- Names

  void name(const EntryDelta& entry) {
    const NodeId before = entry.before.value_or(kNoNode);
    const NodeId after = entry.after.value_or(kNoNode);
    const NodePtr dirInTree = nodeIn(in_.tree, entry.dir);
    const bool unmention = in_.backwards && !entry.after && dirInTree && dirInTree->hasUnder;
    if (before == after && !unmention) return;

    const auto dir = folder(entry.dir);
    const NodePtr base = nodeIn(in_.point, before);
    const NodePtr ours = nodeIn(in_.tree, after);
    if (!dir) {
      if (!isFolder(dirInTree)) return;  // both let the folder go
      conflict(pathOf(entry.dir, entry.name), ConflictReason::ParentMissing, base, ours, nullptr);
      return;
    }
    const NodeId there = entryOf(*dir, entry.name).value_or(kNoNode);
    const NodePtr theirs = nodeIn(in_.theirs, there);
    if (there == kNoNode && after == kNoNode) {
      if (before != kNoNode) checkBothMoved(entry, before, base);
      if (unmention) put(*dir, entry, after, true);
      return;
    }
    if (unchanged(before, base, there, theirs)) return put(*dir, entry, after, unmention);
    if (sameResult(after, ours, there, theirs)) return;
    ConflictReason reason = ConflictReason::BothChanged;
    if (before == kNoNode) reason = ConflictReason::AddedInBoth;
    if (before != kNoNode && after == kNoNode) reason = ConflictReason::ChangedInParent;
    if (before != kNoNode && there == kNoNode) reason = ConflictReason::DeletedInParent;
    conflict(pathOf(entry.dir, entry.name), reason, base, ours, theirs);
  }

  /// The branch moved a node away from a name that theirs has not any more: fine if both moved it to the same place, or
  /// if only one of them still has it.
  void checkBothMoved(const EntryDelta& entry, NodeId id, const NodePtr& base) {
    if (!in_.tree.contains(id) || !in_.theirs.contains(id) || !hasNames(id)) return;
    for (const Names::Place& place : treeNames_.of(id)) {
      const auto dir = folder(place.first);
      if (dir && entryOf(*dir, place.second) == id) return;
    }
    conflict(pathOf(entry.dir, entry.name), ConflictReason::BothChanged, base, nodeIn(in_.tree, id),
             nodeIn(in_.theirs, id));
  }

  /// Theirs has at this name what the point had.
  bool unchanged(NodeId before, const NodePtr& base, NodeId there, const NodePtr& theirs) {
    if (before == kNoNode || there == kNoNode) return before == there;
    if (!base || !theirs) return before == there;
    if (isFolder(base) && isFolder(theirs)) return before == there || folder(before) == there;
    const bool moves = in_.tree.contains(before);  // it goes on elsewhere: node() looks at its data
    if (before == there && moves) return true;
    return !compare_.compare(*base, *theirs).any();
  }

  /// Both made the same of this name. A new node of the branch is then not needed.
  bool sameResult(NodeId after, const NodePtr& ours, NodeId there, const NodePtr& theirs) {
    if (after == there) return true;
    if (!ours || !theirs) return false;
    if (isFolder(ours) && isFolder(theirs)) return folder(after) == there;
    if (ours->kind != theirs->kind || compare_.compare(*ours, *theirs).any()) return false;
    if (treeNames_.of(after).size() != 1) return false;  // its other names need it
    notNeeded_.insert(after);
    return true;
  }

  void put(NodeId dir, const EntryDelta& entry, NodeId after, bool unmention) {
    if (unmention) {
      entries_.push_back(DropEntry{dir, entry.name});
    } else if (after == kNoNode) {
      const NodePtr folderThere = nodeIn(in_.theirs, dir);
      if (folderThere && folderThere->hasUnder) {
        entries_.push_back(PutEntry{dir, entry.name, kNoNode});
      } else {
        entries_.push_back(DropEntry{dir, entry.name});
      }
    } else {
      const NodePtr node = nodeIn(in_.tree, after);
      NodeId id = after;
      if (isFolder(node)) {
        const auto mapped = folder(after);
        if (!mapped) {
          conflict(pathOf(entry.dir, entry.name), ConflictReason::DeletedInParent, nodeIn(in_.point, after), node,
                   nullptr);
          return;
        }
        id = *mapped;
      } else if (in_.point.contains(after)) {
        const auto there = counterpart(after);
        if (!there) {
          conflict(pathOf(entry.dir, entry.name), ConflictReason::DeletedInParent, nodeIn(in_.point, after), node,
                   nullptr);
          return;
        }
        if (!changed_.contains(after)) id = *there;
      }
      entries_.push_back(PutEntry{dir, entry.name, id});
    }
    taken_.insert({dir, entry.name});
  }

  // ---- Nodes

  void node(const NodeDelta& one) {
    if (!one.after) return dropped(one);
    if (!one.before) {
      if (notNeeded_.contains(one.id)) return;
      if (isFolder(one.after)) {
        if (folder(one.id) != one.id) return;  // theirs has made a folder of that name too
        auto bare = std::make_shared<Node>(*one.after);
        bare->entries = Entries();
        puts_.push_back(PutNode{one.id, std::move(bare), true});
      } else {
        puts_.push_back(PutNode{one.id, one.after, false});
      }
      return;
    }
    const auto there = counterpart(one.id);
    const NodePtr theirs = there ? nodeIn(in_.theirs, *there) : nullptr;
    if (!theirs) {
      if (compare_.compare(*one.before, *one.after).any() || movedInTree(one.id)) {
        conflict(pathOf(one.id), ConflictReason::DeletedInParent, one.before, one.after, nullptr);
      }
      return;
    }
    auto merged = std::make_shared<Node>(*theirs);
    if (!fields(one, *theirs, *merged)) return;
    if (in_.backwards) merged->identity = one.after->identity;  // what is met anew, with its identity
    merged->nlink = static_cast<std::uint32_t>(
        std::max<std::int64_t>(1, std::int64_t{one.after->nlink} + theirs->nlink - one.before->nlink));
    if (isFolder(one.after)) {
      merged->entries = Entries();
      puts_.push_back(PutNode{*there, std::move(merged), false});
      return;
    }
    puts_.push_back(PutNode{one.id, std::move(merged), false});
    if (*there == one.id) return;
    // Another file of the same content took its name meanwhile: the branch's node goes on under that name.
    for (const Names::Place& place : theirNames_.of(*there)) {
      if (!taken_.contains(place)) entries_.push_back(PutEntry{place.first, place.second, one.id});
    }
    drops_.push_back(DropNode{*there});
  }

  bool movedInTree(NodeId id) const { return pointNames_.of(id) != treeNames_.of(id); }

  /// Takes each field from the side that changed it; false: both did, differently.
  bool fields(const NodeDelta& one, const Node& theirs, Node& merged) {
    const Node& before = *one.before;
    const Node& after = *one.after;
    const NodeDifference ours = compare_.compare(before, after);
    const NodeDifference their = compare_.compare(before, theirs);
    const NodeDifference both = compare_.compare(after, theirs);
    const bool clash = (ours.type && their.type && both.type) || (ours.content && their.content && both.content) ||
                       (ours.mode && their.mode && both.mode) || (ours.owner && their.owner && both.owner) ||
                       (ours.xattr && their.xattr && both.xattr) || (ours.target && their.target && both.target) ||
                       (their.type && (ours.any() || movedInTree(one.id)));
    if (clash) {
      conflict(pathOf(one.id), ConflictReason::BothChanged, one.before, one.after, std::make_shared<Node>(theirs));
      return false;
    }
    if (ours.type) {
      merged = after;
      return true;
    }
    if (ours.mode) merged.mode = after.mode;
    if (ours.owner) merged.uid = after.uid, merged.gid = after.gid;
    if (ours.xattr) merged.xattrs = after.xattrs;
    if (ours.target) merged.target = after.target;
    if (ours.content) {
      merged.content = after.content;
      merged.size = after.size;
      merged.rdev = after.rdev;
      merged.btime = after.btime;
    }
    if (ours.content || after.timesHeld) {
      merged.atime = after.atime;
      merged.mtime = after.mtime;
      merged.timesHeld = after.timesHeld;
    }
    merged.mtime = std::max(merged.mtime, one.after->kind == Kind::Directory ? after.mtime : merged.mtime);
    merged.ctime = std::max(after.ctime, theirs.ctime);
    return true;
  }

  void dropped(const NodeDelta& one) {
    const auto there = counterpart(one.id);
    if (!there || !in_.theirs.contains(*there)) return;
    if (isFolder(one.before)) {
      if (!allGoes(one.id, *there)) return;
      drops_.push_back(DropNode{*there});
      return;
    }
    std::uint32_t left = 0;
    for (const Names::Place& place : theirNames_.of(*there)) left += taken_.contains(place) ? 0 : 1;
    if (left == 0) {
      drops_.push_back(DropNode{*there});
      return;
    }
    auto kept = std::make_shared<Node>(*nodeIn(in_.theirs, *there));
    kept->nlink = std::max(left, kept->nlink > one.before->nlink ? kept->nlink - one.before->nlink : 1U);
    puts_.push_back(PutNode{*there, std::move(kept), false});
  }

  /// Nothing is in the folder of theirs that the branch has not taken away.
  bool allGoes(NodeId id, NodeId there) {
    const auto path = theirNames_.path(there);
    if (!path || !in_.namesIn) return true;
    bool all = true;
    const NodePtr base = nodeIn(in_.point, id);
    for (const std::string& one : in_.namesIn(*path)) {
      const NodeId* known = base->entries.find(one);
      if (known && *known != kNoNode) continue;  // name() has looked at it
      conflict(joined(*path, one), ConflictReason::ChangedInParent, nullptr, nullptr,
               nodeIn(in_.theirs, entryOf(there, one).value_or(kNoNode)));
      all = false;
    }
    return all;
  }

  /// Two moves that are fine by themselves can cut a folder off or give it two names.
  void checkFolders(const Nodes& result) {
    std::set<NodeId> moved;
    for (const Mutation& mutation : entries_) {
      const auto* put = std::get_if<PutEntry>(&mutation);
      if (put && isFolder(nodeIn(result, put->child))) moved.insert(put->child);
    }
    if (moved.empty()) return;
    const Names names(result);
    for (const NodeId id : moved) {
      if (names.path(id) && names.of(id).size() == 1) continue;
      conflict(pathOf(id), ConflictReason::BothChanged, nodeIn(in_.point, id), nodeIn(in_.tree, id),
               nodeIn(in_.theirs, id));
    }
  }

  const MergeInput& in_;
  const NodeCompare& compare_;
  const Delta delta_;
  const Names pointNames_, treeNames_, theirNames_;
  std::unordered_map<NodeId, std::optional<NodeId>> folders_;
  std::unordered_set<NodeId> changed_;  // nodes whose changes are to be carried over
  std::unordered_set<NodeId> notNeeded_;
  std::set<Names::Place> taken_;  // names of theirs that get another node or none
  std::vector<Mutation> puts_, entries_, drops_;
  std::map<std::string, MergeConflict> conflicts_;
};

}  // namespace

Merge merge(const MergeInput& input, const NodeCompare& compare) { return Merger(input, compare).run(); }

}  // namespace bough
