// What a store does by itself, on one thread: makes records durable, tells of edits, frees what nobody needs, folds a
// long log. See store.h.
#include <chrono>
#include <utility>

#include "native/branchfs/store.h"
#include "native/common/log.h"

namespace bough {
namespace {

constexpr auto kTick = std::chrono::milliseconds(200);  // events of edits come at most this often
constexpr int kTicksPerSync = 4;                        // under a second
constexpr std::uint64_t kFoldBytes = std::uint64_t{64} << 20;

}  // namespace

void Store::upkeep() {
  std::vector<ObjectId> garbage;
  for (int tick = 1;; tick++) {
    std::vector<BranchPtr> dead;
    std::vector<std::shared_ptr<View>> views;
    {
      std::unique_lock wait(upkeepLock_);
      upkeepWake_.wait_for(wait, kTick, [this] { return stopping_; });
      if (stopping_) return;
      dead.swap(dead_);
      views.swap(deadViews_);
    }
    views.clear();  // before the branches that they look at
    dead.clear();
    tellEdits();
    if (tick % kTicksPerSync != 0) continue;
    if (auto done = log_.syncAll(); !done) logLine(done.error().message);
    if (auto done = baseCommit_->sync(); !done) logLine(done.error().message);
    if (keptMayGo_.exchange(false)) releaseKept();
    collectGarbage();
    if (log_.file()->size() > kFoldBytes) {
      if (auto done = fold(false); !done) logLine("the log stays unfolded: " + done.error().message);
    }
  }
}

void Store::tellEdits() {
  {
    const std::lock_guard guard(sinkLock_);
    if (!sink_) return;
  }
  std::vector<EditsEvent> events;
  std::unordered_map<BranchId, std::uint64_t> now;
  {
    const std::lock_guard guard(lock_);
    for (const auto& [id, branch] : ledger_.branches) {
      const std::uint64_t edits = branch->changes();
      const auto told = toldEdits_.find(id);
      const std::uint64_t known = told == toldEdits_.end() ? 0 : told->second;
      if (known != edits) events.push_back({id, edits});
      now.emplace(id, edits);
    }
  }
  toldEdits_.swap(now);
  for (const EditsEvent& event : events) emit(event);
  if (drift_.take()) emit(DriftEvent{});
}

void Store::collectGarbage() {
  const std::vector<ObjectId> garbage = objects_->takeGarbage();
  if (garbage.empty()) return;
  // The record that let go of them must be durable first: else a power cut brings back a tree that names them.
  if (auto done = log_.syncAll(); !done) {
    logLine(done.error().message);
    return;  // the sweep of the next start takes them
  }
  for (const ObjectId id : garbage) {
    if (auto done = objects_->remove(id); !done) logLine("object " + std::to_string(id) + ": " + done.error().message);
  }
}

void Store::bury(std::vector<BranchPtr> dead, std::vector<std::shared_ptr<View>> views) {
  const std::lock_guard guard(upkeepLock_);
  for (BranchPtr& one : dead) dead_.push_back(std::move(one));
  for (auto& one : views) deadViews_.push_back(std::move(one));
}

}  // namespace bough
