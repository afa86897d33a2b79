// Taking commits back, and giving that up. See store.h.
#include <algorithm>
#include <set>
#include <utility>

#include "native/branchfs/store.h"
#include "native/branchfs/store_base_commit.h"
#include "native/branchfs/store_merge.h"
#include "native/common/fail_point.h"
#include "native/common/log.h"

namespace bough {
namespace {

Error noCommit(const std::string& id) {
  return Error{ENOENT, "E_NO_COMMIT", "There is no commit " + id + " that could be undone."};
}

Error undoConflict(std::size_t count) {
  return Error{EBUSY, "E_UNDO_CONFLICT",
               std::to_string(count) + (count == 1 ? " path was" : " paths were") +
                   " changed since the commit, so nothing was undone. Put them back first, or undo by hand."};
}

}  // namespace

Result<std::uint64_t> Store::undo(const std::string& commit, Refusal& refusal) {
  CommitEntry entry;
  {
    const std::lock_guard guard(lock_);
    const CommitEntry* found = ledger_.findCommit(commit);
    if (!found || found->forgotten) return noCommit(commit);
    entry = *found;
  }
  auto result = entry.facts.into == kBase ? undoInBase(entry, refusal) : undoInBranch(entry, refusal);
  if (!result) return result;
  std::vector<BranchId> told = entry.facts.superseded;
  told.push_back(entry.facts.branch);
  if (entry.facts.into != kBase) told.push_back(entry.facts.into);
  tell(told);
  return result;
}

Result<std::uint64_t> Store::undoInBranch(const CommitEntry& entry, Refusal& refusal) {
  BOUGH_ASSIGN(const BranchPtr parent, find(entry.facts.into));
  const NodeCompare compare(*base_, *objects_);
  Nodes before;
  {
    const std::lock_guard guard(lock_);
    if (!ledger_.findCommit(entry.facts.id)) return noCommit(entry.facts.id);
    const std::unique_lock hold(parent->lock);
    BOUGH_TRY(mustBeLive(*parent));
    before = parent->tree.nodes;
    // The way back is a merge too: from what the commit left to what was there, onto what is there now.
    const MergeInput input{entry.after, entry.before, before, namesIn(before), nullptr, true};
    Merge merged = merge(input, compare);
    for (const MergeConflict& one : merged.conflicts) refusal.paths.push_back(one.path);
    if (!refusal.paths.empty()) return undoConflict(refusal.paths.size());
    failPoint("store.undo.begin");
    BOUGH_TRY(record(CommitUndone{entry.facts.id, std::move(merged.edits), log_.newEpoch(), 0, 0, {}}));
    failPoint("store.undo.logged");
    if (const auto view = views_.find(parent->id); view != views_.end()) view->second->treeReplaced(before);
  }
  showReplaced(parent, before);
  return entry.facts.paths;
}

Result<std::uint64_t> Store::undoInBase(const CommitEntry& entry, Refusal& refusal) {
  const std::lock_guard oneAtATime(commitLock_);
  {
    const std::lock_guard guard(lock_);
    const CommitEntry* found = ledger_.findCommit(entry.facts.id);
    if (!found || found->forgotten) return noCommit(entry.facts.id);
  }
  CommitUndone undone{entry.facts.id, {}, 0, 0, 0, {}};
  BaseHold hold;
  if (entry.txn != 0) {
    BOUGH_ASSIGN(const UniqueFd base, baseFolder());
    // How the paths look now, for the branches that see them live.
    BOUGH_ASSIGN(const Nodes before, settled(Nodes(), entry.items));
    const KnownByPath known = knownOf(before);
    Transaction transaction;
    undone.txn = transaction.txn = log_.newTxn();
    undone.firstRoot = transaction.firstRoot = log_.newRoots(entry.items.size());
    BOUGH_TRY(log_.reserveNow());
    transaction.note = encodeNote(undone, known);
    transaction.decided = [&] { hold = holdAll(); };
    failPoint("store.undo.base.begin");
    Outcome outcome = baseCommit_->undo(base.get(), entry.txn, std::move(transaction));
    if (!outcome.committed()) {
      hold = BaseHold();
      Error error = refusedBy(outcome, refusal);
      if (error.code == "E_UNDO_CONFLICT") {
        refusal.conflicts.clear();
        error = undoConflict(refusal.paths.size());
      }
      return error;
    }
    failPoint("store.undo.base.swapped");
    if (!hold.store.owns_lock()) hold = holdAll();
    BOUGH_ASSIGN(undone.pins, pinsFor(movesOf(outcome, known, *base_), known, CommitFacts{}));
  } else {
    hold = holdAll();
  }
  BOUGH_TRY(record(undone, true));
  failPoint("store.undo.base.logged");
  hold = BaseHold();
  BOUGH_TRY(log_.syncAll());
  if (undone.txn != 0) BOUGH_TRY(baseCommit_->acknowledge(undone.txn));
  keptMayGo_ = true;
  return entry.facts.paths;
}

Result<> Store::forget(const std::string& commit) {
  {
    const std::lock_guard guard(lock_);
    const CommitEntry* found = ledger_.findCommit(commit);
    if (!found || found->forgotten) return noCommit(commit);
    BOUGH_TRY(record(CommitForgotten{commit}, true));
  }
  releaseKept();
  return Done{};
}

void Store::releaseOrphans() {
  // Their record says that nobody needs them; a crash came before they were deleted.
  for (const Txn txn : baseCommit_->transactions()) {
    const auto names = [txn](const CommitEntry& entry) { return entry.txn == txn; };
    if (std::any_of(ledger_.commits.begin(), ledger_.commits.end(), names)) continue;
    if (auto done = baseCommit_->release(txn); !done) logLine(done.error().message);
  }
}

void Store::releaseKept() {
  const std::lock_guard oneAtATime(commitLock_);
  std::vector<CommitEntry> candidates;
  std::set<std::uint32_t> used;
  {
    const std::lock_guard guard(lock_);
    for (const CommitEntry& entry : ledger_.commits) {
      if (entry.forgotten) candidates.push_back(entry);
    }
    if (candidates.empty()) return;
    const auto look = [&used](const Nodes& nodes) {
      nodes.forEach([&used](NodeId, const NodePtr& node) {
        if (node->content.where == Content::Where::Base) used.insert(node->content.base.root);
        if (node->hasUnder) used.insert(node->under.root);
      });
    };
    for (const auto& [id, branch] : ledger_.branches) {
      const std::shared_lock hold(branch->lock);
      look(branch->tree.nodes);
      look(branch->point);
      for (const AdoptedPoint& one : branch->adopted) look(one.settled);
    }
    for (const CommitEntry& entry : ledger_.commits) {
      look(entry.before);
      look(entry.after);
    }
  }
  for (const CommitEntry& entry : candidates) {
    const auto first = used.lower_bound(entry.firstRoot);
    if (first != used.end() && *first < entry.firstRoot + entry.items.size()) continue;
    // The record first: what is released but still named would be worse than what is kept for nothing.
    {
      const std::lock_guard guard(lock_);
      if (auto done = record(CommitForgotten{entry.facts.id}, true); !done) {
        logLine(done.error().message);
        return;
      }
    }
    if (auto done = baseCommit_->release(entry.txn); !done) logLine(done.error().message);
  }
}

}  // namespace bough
