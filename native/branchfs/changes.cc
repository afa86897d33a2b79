// See changes.h.
#include "native/branchfs/changes.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace bough {
namespace {

using Name = std::pair<NodeId, std::string>;

/// One name that came or went, at its path.
struct Moved {
  NodeId id = kNoNode;
  Name name;
};

class Finder {
 public:
  Finder(const Nodes& before, const Nodes& after, const NodeCompare& compare)
      : delta_(deltaOf(before, after)), before_(before), after_(after), compare_(compare) {
    for (const NodeDelta& node : delta_.nodes) byId_.emplace(node.id, &node);
  }

  std::vector<PathChange> run() {
    if (delta_.empty()) return {};
    collectNames();
    matchFolders();
    matchSamePath();
    matchFiles();
    for (const auto& [path, moved] : vanished_) add(path, ChangeKind::Deleted, moved, Moved{});
    for (const auto& [path, moved] : appeared_) add(path, ChangeKind::Added, Moved{}, moved);
    changedNodes();
    matchContents();
    markImplied();
    std::sort(result_.begin(), result_.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  NodePtr nodeBefore(NodeId id) const {
    const NodePtr* node = id == kNoNode ? nullptr : before_.nodes().find(id);
    return node ? *node : nullptr;
  }
  NodePtr nodeAfter(NodeId id) const {
    const NodePtr* node = id == kNoNode ? nullptr : after_.nodes().find(id);
    return node ? *node : nullptr;
  }
  bool folder(NodeId id) const {
    const NodePtr node = nodeAfter(id) ? nodeAfter(id) : nodeBefore(id);
    return node && node->kind == Kind::Directory;
  }

  /// Where a folder is now, or would be: a folder that is gone is found below where its parent is.
  std::optional<std::string> pathOf(NodeId dir, int depth = 0) const {
    if (dir == kRootNode) return std::string();
    if (auto path = after_.path(dir)) return path;
    const auto& places = before_.of(dir);
    if (places.empty() || depth > 4096) return std::nullopt;
    auto parent = pathOf(places.front().first, depth + 1);
    if (!parent) return std::nullopt;
    return joined(*parent, places.front().second);
  }

  void collectNames() {
    for (const EntryDelta& entry : delta_.entries) {
      const NodeId old = entry.before.value_or(kNoNode);
      const NodeId now = entry.after.value_or(kNoNode);
      if (old == now) continue;
      const auto dir = pathOf(entry.dir);
      if (!dir) continue;
      const std::string path = joined(*dir, entry.name);
      if (old != kNoNode) vanished_.emplace(path, Moved{old, {entry.dir, entry.name}});
      if (now == kNoNode) continue;
      appeared_.emplace(path, Moved{now, {entry.dir, entry.name}});
      comes_.insert(now);
    }
  }

  void matchFolders() {
    std::unordered_map<NodeId, std::string> went;
    for (const auto& [path, moved] : vanished_) {
      if (folder(moved.id)) went.emplace(moved.id, path);
    }
    for (auto it = appeared_.begin(); it != appeared_.end();) {
      const auto from = went.find(it->second.id);
      if (from == went.end()) {
        ++it;
        continue;
      }
      renamed(it->first, it->second, from->second);
      it = appeared_.erase(it);
    }
  }

  void renamed(const std::string& path, const Moved& to, const std::string& from) {
    const auto old = vanished_.find(from);
    PathChange& change = add(path, ChangeKind::Renamed, old->second, to);
    change.from = from;
    vanished_.erase(old);
    // Something else that had the new name is gone by that, and the rename says so.
    const auto replaced = vanished_.find(path);
    if (replaced == vanished_.end() || comes_.contains(replaced->second.id)) return;
    change.names.push_back(replaced->second.name);
    addNode(change, replaced->second.id);
    vanished_.erase(replaced);
  }

  void matchSamePath() {
    for (auto it = appeared_.begin(); it != appeared_.end();) {
      const auto old = vanished_.find(it->first);
      if (old == vanished_.end()) {
        ++it;
        continue;
      }
      add(it->first, ChangeKind::Modified, old->second, it->second);
      vanished_.erase(old);
      it = appeared_.erase(it);
    }
  }

  void matchFiles() {
    std::unordered_map<NodeId, std::vector<std::string>> went;
    for (const auto& [path, moved] : vanished_) went[moved.id].push_back(path);
    for (auto it = appeared_.begin(); it != appeared_.end();) {
      const auto from = went.find(it->second.id);
      if (from == went.end() || from->second.empty()) {
        ++it;
        continue;
      }
      const std::string old = from->second.back();
      from->second.pop_back();
      renamed(it->first, it->second, old);
      it = appeared_.erase(it);
    }
  }

  PathChange& add(const std::string& path, ChangeKind kind, const Moved& old, const Moved& now) {
    PathChange change;
    change.path = path;
    change.kind = kind;
    change.beforeId = old.id;
    change.afterId = now.id;
    change.before = nodeBefore(old.id);
    change.after = nodeAfter(now.id);
    if (old.id != kNoNode) change.names.push_back(old.name);
    if (now.id != kNoNode && now.name != old.name) change.names.push_back(now.name);
    addNode(change, old.id);
    if (now.id != old.id) addNode(change, now.id);
    if (change.before) change.was = before_.path(old.name.first, old.name.second).value_or(path);
    if (change.before && change.after) change.what = compare_.compare(*change.before, *change.after);
    byPath_.emplace(path, result_.size());
    result_.push_back(std::move(change));
    return result_.back();
  }

  void addNode(PathChange& change, NodeId id) const {
    if (id != kNoNode && byId_.contains(id)) change.nodes.push_back(id);
  }

  /// Nodes that changed in place, at every name they have.
  void changedNodes() {
    for (const NodeDelta& node : delta_.nodes) {
      if (!node.before || !node.after) continue;
      const NodeDifference what = compare_.compare(*node.before, *node.after);
      if (!what.any()) continue;
      std::vector<Name> places = after_.of(node.id);
      if (node.id == kRootNode) places.emplace_back(kNoNode, std::string());
      for (const Name& place : places) {
        const auto path =
            node.id == kRootNode ? std::optional<std::string>("") : after_.path(place.first, place.second);
        if (!path || byPath_.contains(*path)) continue;
        PathChange change;
        change.path = *path;
        change.was = before_.path(node.id).value_or(*path);
        change.before = node.before;
        change.after = node.after;
        change.beforeId = change.afterId = node.id;
        change.what = what;
        change.nodes.push_back(node.id);
        byPath_.emplace(*path, result_.size());
        result_.push_back(std::move(change));
      }
    }
    std::erase_if(result_,
                  [](const PathChange& c) { return c.kind == ChangeKind::Modified && !c.what.any() && same(c); });
  }
  /// The same to a person, by other nodes: a file written anew with the bytes it had. Kept as part of the truth when
  /// names differ, since a partial commit must carry the name.
  static bool same(const PathChange& change) { return change.beforeId == change.afterId; }

  /// Files deleted here and added there with the same bytes are renames too.
  void matchContents() {
    std::unordered_multimap<std::uint64_t, std::size_t> deleted;
    for (std::size_t i = 0; i < result_.size(); i++) {
      const PathChange& c = result_[i];
      if (c.kind != ChangeKind::Deleted || c.before->kind != Kind::File) continue;
      if (const std::uint64_t size = compare_.size(*c.before)) deleted.emplace(size, i);
    }
    if (deleted.empty()) return;
    std::unordered_set<std::size_t> taken;
    for (PathChange& c : result_) {
      if (c.kind != ChangeKind::Added || c.after->kind != Kind::File) continue;
      const auto [from, to] = deleted.equal_range(compare_.size(*c.after));
      for (auto it = from; it != to; ++it) {
        PathChange& old = result_[it->second];
        if (taken.contains(it->second) || !compare_.sameContent(*old.before, *c.after)) continue;
        taken.insert(it->second);
        c.kind = ChangeKind::Renamed;
        c.sameNode = false;
        c.from = old.path;
        c.was = old.was;
        c.before = old.before;
        c.beforeId = old.beforeId;
        c.names.insert(c.names.end(), old.names.begin(), old.names.end());
        c.nodes.insert(c.nodes.end(), old.nodes.begin(), old.nodes.end());
        c.what = compare_.compare(*c.before, *c.after);
        break;
      }
    }
    std::size_t index = 0;
    std::erase_if(result_, [&](const PathChange&) { return taken.contains(index++); });
  }

  void markImplied() {
    std::unordered_set<std::string> cameIn, wentFrom;  // folders above something that came, or went
    const auto above = [](std::unordered_set<std::string>& set, std::string_view path) {
      while (true) {
        const std::size_t slash = path.rfind('/');
        if (slash == std::string_view::npos) return;
        path = path.substr(0, slash);
        if (!set.emplace(path).second) return;
      }
    };
    for (const PathChange& c : result_) {
      if (c.kind == ChangeKind::Added || c.kind == ChangeKind::Renamed) above(cameIn, c.path);
      if (c.kind == ChangeKind::Deleted) above(wentFrom, c.path);
      if (c.kind == ChangeKind::Renamed) above(wentFrom, c.from);
    }
    for (PathChange& c : result_) {
      const bool isFolder = (c.after ? c.after : c.before)->kind == Kind::Directory;
      if (c.kind == ChangeKind::Added && isFolder) c.implied = cameIn.contains(c.path);
      if (c.kind == ChangeKind::Deleted && isFolder) c.implied = wentFrom.contains(c.path);
      if (c.kind == ChangeKind::Modified && !c.what.any()) c.implied = true;
    }
  }

  const Delta delta_;
  const Names before_, after_;
  const NodeCompare& compare_;
  std::unordered_map<NodeId, const NodeDelta*> byId_;
  std::map<std::string, Moved> vanished_, appeared_;
  std::unordered_set<NodeId> comes_;  // ids that have a name they had not
  std::unordered_map<std::string, std::size_t> byPath_;
  std::vector<PathChange> result_;
};

bool chosen(const PathChange& change, const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return atOrBelow(change.path, path) || (change.kind == ChangeKind::Renamed && atOrBelow(change.from, path));
  });
}

}  // namespace

std::vector<PathChange> changesBetween(const Nodes& before, const Nodes& after, const NodeCompare& compare) {
  if (before.sameAs(after)) return {};
  return Finder(before, after, compare).run();
}

std::size_t shownCount(const std::vector<PathChange>& changes) {
  return static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(), [](const PathChange& c) { return !c.implied; }));
}

Selection select(const std::vector<PathChange>& changes, const std::vector<std::string>& paths) {
  Selection selection;
  std::vector<const PathChange*> taken;
  for (const PathChange& change : changes) {
    if (chosen(change, paths)) taken.push_back(&change);
  }
  std::set<const PathChange*> all(taken.begin(), taken.end());
  for (const PathChange& change : changes) {
    const bool brings = change.kind == ChangeKind::Added || change.kind == ChangeKind::Renamed;
    if (!brings || all.contains(&change) || change.after->kind != Kind::Directory) continue;
    for (const PathChange* one : taken) {
      if (one->kind != ChangeKind::Deleted && atOrBelow(one->path, change.path)) {
        all.insert(&change);
        break;
      }
    }
  }
  for (const PathChange* change : all) {
    selection.names.insert(change->names.begin(), change->names.end());
    selection.nodes.insert(change->nodes.begin(), change->nodes.end());
    if (!change->implied) selection.shown++;
  }
  return selection;
}

}  // namespace bough
