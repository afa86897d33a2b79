// See pins.h.
#include "native/branchfs/pins.h"

#include <memory>
#include <utility>

#include "native/branchfs/change.h"
#include "native/branchfs/delta.h"

namespace bough {
namespace {

std::pair<std::string, std::string> split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

KnownByPath knownOf(const Nodes& settled) {
  KnownByPath known;
  const Names names(settled);
  settled.forEach([&](NodeId id, const NodePtr& node) {
    if (!node->identity.known && id != kRootNode) return;
    if (id == kRootNode) known.emplace("", Known{id, node});
    for (const Names::Place& place : names.of(id)) {
      if (const auto path = names.path(place.first, place.second)) known.emplace(*path, Known{id, node});
    }
  });
  return known;
}

Pins::Pins(std::vector<BaseMove> moves, KnownByPath known, Settle settle)
    : moves_(std::move(moves)), known_(std::move(known)), settle_(std::move(settle)) {
  for (const BaseMove& move : moves_) byPath_.emplace(move.path, &move);
}

bool Pins::moved(BaseRef& ref) const {
  if (ref.root != 0) return false;
  std::string at = ref.path;
  while (true) {
    if (const auto found = byPath_.find(at); found != byPath_.end()) {
      if (found->second->root == 0) return false;
      std::string rest = ref.path.substr(at.size());
      if (rest.starts_with('/')) rest.erase(0, 1);
      ref = BaseRef{found->second->root, std::move(rest)};
      return true;
    }
    const std::size_t slash = at.rfind('/');
    if (slash == std::string::npos) return false;
    at.resize(slash);
  }
}

std::vector<Mutation> Pins::repoint(const Nodes& nodes) const {
  std::vector<Mutation> result;
  nodes.forEach([&](NodeId id, const NodePtr& node) {
    BaseRef content = node->content.base;
    BaseRef under = node->under;
    const bool data = node->content.where == Content::Where::Base && moved(content);
    const bool below = node->hasUnder && moved(under);
    if (!data && !below) return;
    auto changed = std::make_shared<Node>(*node);
    changed->entries = Entries();
    changed->content.base = std::move(content);
    changed->under = std::move(under);
    result.push_back(PutNode{id, std::move(changed), false});
  });
  return result;
}

Result<std::vector<Mutation>> Pins::shield(const Nodes& nodes) {
  // A folder of the base may have another path in the branch: look by what lies under its folders.
  std::unordered_map<std::string, std::vector<NodeId>> folders;
  nodes.forEach([&](NodeId id, const NodePtr& node) {
    if (node->hasUnder && node->under.root == 0) folders[node->under.path].push_back(id);
  });
  if (!nodes.contains(kRootNode)) folders[""].push_back(kRootNode);
  const Names names(nodes);

  struct Hidden {
    std::string folder, name;  // in the branch
    const BaseMove* move;
  };
  std::vector<Hidden> hidden;
  std::vector<std::string> parents;
  std::vector<Mutation> root;
  for (const BaseMove& move : moves_) {
    if (move.path.empty()) {  // the base folder itself got another mode or owner
      if (!nodes.contains(kRootNode) && move.old) root.push_back(PutNode{kRootNode, move.old, false});
      continue;
    }
    const auto [folder, name] = split(move.path);
    std::string above = folder;
    while (true) {  // the nearest folder that the branch knows decides
      if (const auto found = folders.find(above); found != folders.end()) {
        for (const NodeId id : found->second) {
          const auto at = names.path(id);
          if (!at) continue;
          std::string rest = folder.substr(above.size());
          if (rest.starts_with('/')) rest.erase(0, 1);
          // What the branch has of the base further down would have been nearer: this is its own, or nothing.
          const std::string first = rest.empty() ? name : rest.substr(0, rest.find('/'));
          const NodePtr* node = nodes.find(id);
          if (node && (*node)->entries.contains(first)) continue;
          std::string parent = rest.empty() ? *at : joined(*at, rest);
          parents.push_back(parent);
          hidden.push_back({std::move(parent), name, &move});
        }
        break;
      }
      if (above.empty()) break;
      above = split(above).first;
    }
  }
  if (hidden.empty()) return root;
  BOUGH_ASSIGN(const Nodes settled, settle_(nodes, parents));
  std::vector<Mutation> result = difference(nodes, settled);
  for (Mutation& one : result) {
    auto* put = std::get_if<PutNode>(&one);
    if (!put || nodes.contains(put->id) || !put->node->hasUnder || put->node->under.root != 0) continue;
    const auto before = known_.find(put->node->under.path);
    if (before == known_.end() || before->second.id != put->id) continue;
    auto folder = std::make_shared<Node>(*before->second.node);
    folder->entries = put->node->entries;
    put->node = std::move(folder);
  }
  result.insert(result.end(), root.begin(), root.end());
  for (const Hidden& one : hidden) {
    const auto folder = walk(settled, one.folder);
    if (!folder || !settled.contains(*folder)) continue;
    if (one.move->old && !settled.contains(one.move->oldId)) {
      result.push_back(PutNode{one.move->oldId, one.move->old, false});
    }
    result.push_back(PutEntry{*folder, one.name, one.move->old ? one.move->oldId : kNoNode});
  }
  return result;
}

Result<Pin> Pins::of(const std::string& owner, const Nodes& tree, const Nodes& point, bool settles) {
  Pin pin{owner, {}, {}};
  if (settles) {
    if (!hasLast_ || !lastTree_.sameAs(tree)) {
      BOUGH_ASSIGN(lastShield_, shield(tree));
      lastTree_ = tree;
      hasLast_ = true;
    }
    pin.tree = lastShield_;
    for (const Mutation& one : lastShield_) {  // what the point knows already it knows better
      if (const auto* put = std::get_if<PutNode>(&one); put && point.contains(put->id)) continue;
      if (const auto* put = std::get_if<PutEntry>(&one)) {
        const NodePtr* folder = point.find(put->dir);
        if (folder && (*folder)->entries.contains(put->name)) continue;
      }
      pin.point.push_back(one);
    }
  }
  const auto add = [this](std::vector<Mutation>& to, const Nodes& nodes) {
    for (Mutation& one : repoint(nodes)) to.push_back(std::move(one));
  };
  add(pin.tree, tree);
  add(pin.point, point);
  return pin;
}

}  // namespace bough
