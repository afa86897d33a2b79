// See change.h.
#include "native/branchfs/change.h"

#include <memory>
#include <utility>

namespace bough {
namespace {

/// Gives `change` a copy of the folder `dir` to alter and puts it back; a folder that is not there is skipped.
template <typename Alter>
void alterFolder(Nodes& nodes, NodeId dir, Alter&& alter) {
  const NodePtr* found = nodes.find(dir);
  if (!found) return;
  auto folder = std::make_shared<Node>(**found);
  alter(folder->entries);
  nodes.set(dir, std::move(folder));
}

struct Applier {
  Nodes& nodes;

  void operator()(const PutNode& put) const {
    if (put.node->kind == Kind::Directory && !put.withEntries) {
      const NodePtr* old = nodes.find(put.id);
      if (old && !(*old)->entries.sameAs(put.node->entries)) {
        auto folder = std::make_shared<Node>(*put.node);
        folder->entries = (*old)->entries;
        nodes.set(put.id, std::move(folder));
        return;
      }
    }
    nodes.set(put.id, put.node);
  }
  void operator()(const DropNode& drop) const { nodes.remove(drop.id); }
  void operator()(const PutEntry& put) const {
    alterFolder(nodes, put.dir, [&](Entries& entries) { entries.set(put.name, put.child); });
  }
  void operator()(const DropEntry& drop) const {
    alterFolder(nodes, drop.dir, [&](Entries& entries) { entries.remove(drop.name); });
  }
};

}  // namespace

void apply(Nodes& nodes, const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) std::visit(Applier{nodes}, mutation);
}

std::vector<Mutation> difference(const Nodes& from, const Nodes& to) {
  std::vector<Mutation> result;
  Nodes::diff(from, to, [&](NodeId id, const NodePtr* before, const NodePtr* after) {
    if (!after) {
      result.push_back(DropNode{id});
    } else if (!before) {
      result.push_back(PutNode{id, *after, true});
    } else if ((*after)->kind != Kind::Directory || (*before)->kind != Kind::Directory) {
      result.push_back(PutNode{id, *after, true});
    } else {
      auto bare = std::make_shared<Node>(**after);
      bare->entries = Entries();
      result.push_back(PutNode{id, std::move(bare), false});
      Entries::diff((*before)->entries, (*after)->entries,
                    [&](const std::string& name, const NodeId*, const NodeId* child) {
                      if (child) {
                        result.push_back(PutEntry{id, name, *child});
                      } else {
                        result.push_back(DropEntry{id, name});
                      }
                    });
    }
  });
  return result;
}

}  // namespace bough
