// What a store takes up, and whether it is sound. See store.h.
#include <set>
#include <utility>

#include "native/branchfs/delta.h"
#include "native/branchfs/store.h"

namespace bough {

Result<StoreStatus> Store::status() {
  StoreStatus status;
  const auto done = objects_->forEach([&](ObjectId id) {
    status.objects++;
    if (const auto bytes = objects_->bytesOnDisk(id)) status.bytes += *bytes;
  });
  if (!done) return done.error();
  const auto disk = objects_->statfs();
  if (!disk) return disk.error();
  status.freeBytes = static_cast<std::uint64_t>(disk->f_bavail) * disk->f_frsize;
  status.logBytes = log_.file()->size();
  const std::lock_guard guard(lock_);
  status.branches = ledger_.branches.size();
  status.mounts = mounts_.size();
  for (const CommitEntry& entry : ledger_.commits) status.commits += entry.forgotten ? 0 : 1;
  return status;
}

std::vector<std::string> Store::check() {
  std::vector<std::string> problems;
  std::set<ObjectId> there, missing;
  if (auto done = objects_->forEach([&](ObjectId id) { there.insert(id); }); !done) {
    problems.push_back("The objects cannot be listed: " + std::string(std::strerror(done.error().errnum)) + ".");
  }
  std::vector<BranchPtr> branches;
  {
    const std::lock_guard guard(lock_);
    for (const auto& [id, branch] : ledger_.branches) {
      branches.push_back(branch);
      if (branch->parent != kBase && !ledger_.find(branch->parent)) {
        problems.push_back("Branch " + id + " has lost its parent " + branch->parent + ".");
      }
    }
  }
  const auto look = [&](const BranchId& id, const char* what, const Nodes& nodes) {
    if (!nodes.wellFormed()) problems.push_back("The " + std::string(what) + " of branch " + id + " is malformed.");
    const Names names(nodes);
    nodes.forEach([&](NodeId node, const NodePtr& value) {
      // A file of the base with hard links may be known by its node while its remaining names are the base's.
      const bool elsewhere = value->kind != Kind::Directory && value->identity.known;
      if (node != kRootNode && !elsewhere && !names.path(node)) {
        problems.push_back("Node " + std::to_string(node) + " of the " + what + " of branch " + id + " has no name.");
      }
      const Content& content = value->content;
      if (content.where == Content::Where::Object && !there.contains(content.object) &&
          !objects_->stat(content.object)) {
        missing.insert(content.object);
      }
      if (value->kind != Kind::Directory) return;
      value->entries.forEach([&](const std::string& name, NodeId child) {
        if (child == kNoNode || nodes.contains(child)) return;
        problems.push_back("The name " + name + " in node " + std::to_string(node) + " of the " + what + " of branch " +
                           id + " leads nowhere.");
      });
    });
  };
  for (const BranchPtr& branch : branches) {
    const Sides sides = sidesOf(*branch);
    look(branch->id, "tree", sides.after);
    look(branch->id, "point", sides.before);
  }
  for (const ObjectId id : missing) problems.push_back("The data of object " + std::to_string(id) + " is missing.");
  return problems;
}

}  // namespace bough
