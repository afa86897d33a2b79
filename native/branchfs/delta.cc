// See delta.h.
#include "native/branchfs/delta.h"

namespace bough {
namespace {

const Entries kNoEntries;

const Entries& entriesOf(const NodePtr& node) {
  return node && node->kind == Kind::Directory ? node->entries : kNoEntries;
}

}  // namespace

Delta deltaOf(const Nodes& before, const Nodes& after) {
  Delta delta;
  Nodes::diff(before, after, [&](NodeId id, const NodePtr* inBefore, const NodePtr* inAfter) {
    NodeDelta node{id, inBefore ? *inBefore : nullptr, inAfter ? *inAfter : nullptr};
    Entries::diff(entriesOf(node.before), entriesOf(node.after),
                  [&](const std::string& name, const NodeId* old, const NodeId* now) {
                    delta.entries.push_back(
                        {id, name, old ? std::optional(*old) : std::nullopt, now ? std::optional(*now) : std::nullopt});
                  });
    delta.nodes.push_back(std::move(node));
  });
  return delta;
}

Names::Names(const Nodes& nodes) : nodes_(nodes) {
  nodes_.forEach([this](NodeId dir, const NodePtr& node) {
    if (node->kind != Kind::Directory) return;
    node->entries.forEach([&](const std::string& name, NodeId child) {
      if (child != kNoNode) places_[child].emplace_back(dir, name);
    });
  });
}

const std::vector<Names::Place>& Names::of(NodeId id) const {
  static const std::vector<Place> kNone;
  const auto found = places_.find(id);
  return found == places_.end() ? kNone : found->second;
}

std::optional<std::string> Names::path(NodeId id) const {
  std::vector<const std::string*> parts;
  while (id != kRootNode) {
    const std::vector<Place>& places = of(id);
    if (places.empty() || parts.size() > nodes_.size()) return std::nullopt;  // cut off, or a circle
    parts.push_back(&places.front().second);
    id = places.front().first;
  }
  std::string path;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!path.empty()) path.push_back('/');
    path.append(**part);
  }
  return path;
}

std::optional<std::string> Names::path(NodeId dir, std::string_view name) const {
  std::optional<std::string> folder = path(dir);
  if (!folder) return std::nullopt;
  return joined(*folder, name);
}

std::string joined(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty()) path.push_back('/');
  path.append(name);
  return path;
}

std::optional<NodeId> walk(const Nodes& nodes, std::string_view path) {
  NodeId id = kRootNode;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    const NodePtr* folder = nodes.find(id);
    if (!folder) return std::nullopt;
    if ((*folder)->kind != Kind::Directory) return kNoNode;
    const NodeId* child = (*folder)->entries.find(name);
    if (!child) {
      if ((*folder)->hasUnder) return std::nullopt;
      return kNoNode;
    }
    if (*child == kNoNode) return kNoNode;
    id = *child;
  }
  return id;
}

bool atOrBelow(std::string_view path, std::string_view folder) {
  return folder.empty() || (path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/'));
}

}  // namespace bough
