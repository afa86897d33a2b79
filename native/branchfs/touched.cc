// See touched.h.
#include "native/branchfs/touched.h"

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "native/branchfs/delta.h"

namespace bough {
namespace {

class Translator {
 public:
  Translator(const Names& before, const Names& after, const Names& target)
      : before_(before), after_(after), target_(target) {}

  /// The path in the target of a folder of either side.
  std::optional<std::string> folder(NodeId id, int depth = 0) {
    if (id == kRootNode) return std::string();
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    std::optional<std::string> path = target_.path(id);
    const auto& places = before_.of(id).empty() ? after_.of(id) : before_.of(id);
    if (!path && !places.empty() && depth < 4096) {
      if (const auto above = folder(places.front().first, depth + 1)) path = joined(*above, places.front().second);
    }
    known_.emplace(id, path);
    return path;
  }

 private:
  const Names &before_, &after_, &target_;
  std::unordered_map<NodeId, std::optional<std::string>> known_;
};

}  // namespace

std::vector<std::string> touchedPaths(const Nodes& before, const Nodes& after, const Nodes& target) {
  const Delta delta = deltaOf(before, after);
  if (delta.empty()) return {};
  const Names beforeNames(before), afterNames(after);
  std::set<Names::Place> places;
  for (const EntryDelta& entry : delta.entries) places.emplace(entry.dir, entry.name);
  for (const NodeDelta& node : delta.nodes) {
    for (const Names* names : {&beforeNames, &afterNames}) {
      const auto& some = names->of(node.id);
      places.insert(some.begin(), some.end());
    }
  }
  const Names targetNames(target);
  Translator translator(beforeNames, afterNames, targetNames);
  std::vector<std::string> paths;
  for (const auto& [dir, name] : places) {
    if (const auto folder = translator.folder(dir)) paths.push_back(joined(*folder, name));
  }
  return paths;
}

}  // namespace bough
