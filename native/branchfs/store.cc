// The tables of a store and its small requests. See store.h.
#include "native/branchfs/store.h"

#include <algorithm>
#include <utility>

namespace bough {

Store::Store(StoreOptions options) : options_(std::move(options)) {}

Result<BranchPtr> Store::branchOf(const BranchId& id) const {
  BranchPtr branch = ledger_.find(id);
  if (!branch) return Error{ENOENT, "E_NO_BRANCH", "There is no branch " + id + " in this store."};
  return branch;
}

Result<BranchPtr> Store::find(const BranchId& id) const {
  const std::lock_guard guard(lock_);
  return branchOf(id);
}

BranchInfo Store::infoOf(const Branch& branch) const {
  BranchInfo info;
  info.id = branch.id;
  info.parent = branch.parent;
  info.name = branch.name;
  info.group = branch.group;
  info.exclusive = branch.exclusive;
  info.state = branch.state;
  info.createdMs = branch.createdMs;
  for (const BranchPtr& child : ledger_.childrenOf(branch.id)) info.children.push_back(child->id);
  if (mounts_.contains(branch.id)) {
    info.mountAt = branch.mountAt;
    info.mountFolder = branch.mountFolder;
  }
  info.edits = branch.changes();
  info.committedInto = branch.committedInto;
  info.commit = branch.commitId;
  return info;
}

std::vector<BranchInfo> Store::list() const {
  const std::lock_guard guard(lock_);
  std::vector<BranchPtr> branches;
  for (const auto& [id, branch] : ledger_.branches) branches.push_back(branch);
  std::sort(branches.begin(), branches.end(), [](const auto& a, const auto& b) { return a->order < b->order; });
  std::vector<BranchInfo> result;
  for (const BranchPtr& branch : branches) result.push_back(infoOf(*branch));
  return result;
}

Result<BranchInfo> Store::info(const BranchId& id) const {
  const std::lock_guard guard(lock_);
  BOUGH_ASSIGN(const BranchPtr branch, branchOf(id));
  return infoOf(*branch);
}

Result<BranchInfo> Store::rename(const BranchId& id, const std::string& name) {
  BranchInfo info;
  {
    const std::lock_guard guard(lock_);
    BOUGH_ASSIGN(const BranchPtr branch, branchOf(id));
    BOUGH_TRY(record(Renamed{id, name}));
    info = infoOf(*branch);
  }
  emit(BranchEvent{info});
  return info;
}

Result<std::shared_ptr<View>> Store::view(const BranchId& id) {
  const std::lock_guard guard(lock_);
  BOUGH_ASSIGN(const BranchPtr branch, branchOf(id));
  return viewOf(branch);
}

std::shared_ptr<View> Store::viewOf(const BranchPtr& branch) {
  std::shared_ptr<View>& view = views_[branch->id];
  if (!view) view = std::make_shared<View>(branch, *base_, *objects_);
  return view;
}

Result<> Store::record(const std::vector<Record>& records, bool useReserve) {
  BOUGH_TRY(log_.write(records, useReserve));
  for (const Record& one : records) BOUGH_TRY(ledger_.apply(one));
  return Done{};
}

Result<> Store::record(const Record& one, bool useReserve) {
  BOUGH_TRY(log_.write(one, useReserve));
  return ledger_.apply(one);
}

LeaseOf Store::leaseOf() {
  return [this](ObjectId id) { return objects_->lease(id); };
}

void Store::onEvent(EventSink sink) {
  const std::lock_guard guard(sinkLock_);
  sink_ = std::move(sink);
}

void Store::emit(const StoreEvent& event) {
  const std::lock_guard guard(sinkLock_);
  if (sink_) sink_(event);
}

Result<> Store::sync() {
  BOUGH_TRY(log_.syncAll());
  return baseCommit_->sync();
}

}  // namespace bough
