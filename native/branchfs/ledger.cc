// See ledger.h.
#include "native/branchfs/ledger.h"

#include <algorithm>
#include <utility>

namespace bough {
namespace {

Error misfit(const std::string& what) {
  return Error{EIO, "E_STORE_DAMAGED", "The store's log does not fit together: " + what + "."};
}

}  // namespace

void countEdit(Branch& branch) { branch.editsSeen.store(++branch.edits, std::memory_order_relaxed); }

Result<> Ledger::apply(const Record& record) {
  return std::visit([this](const auto& r) { return on(r); }, record);
}

BranchPtr Ledger::find(const BranchId& id) const {
  const auto found = branches.find(id);
  return found == branches.end() ? nullptr : found->second;
}

std::vector<BranchPtr> Ledger::childrenOf(const BranchId& id) const {
  std::vector<BranchPtr> children;
  for (const auto& [ignored, branch] : branches) {
    if (branch->parent == id) children.push_back(branch);
  }
  std::sort(children.begin(), children.end(),
            [](const BranchPtr& a, const BranchPtr& b) { return a->order < b->order; });
  return children;
}

CommitEntry* Ledger::findCommit(const std::string& id) {
  for (CommitEntry& entry : commits) {
    if (entry.facts.id == id) return &entry;
  }
  return nullptr;
}

Result<> Ledger::on(const Changed& r) {
  const BranchPtr branch = find(r.branch);
  if (!branch) return misfit("a change of a branch that is not there");
  if (!r.change.settles.empty()) branch->foldAdopted();
  bough::apply(branch->point, r.change.settles);
  bough::apply(branch->tree.nodes, r.change.settles);
  bough::apply(branch->tree.nodes, r.change.edits);
  if (!r.change.edits.empty()) countEdit(*branch);
  return Done{};
}

Result<> Ledger::on(const BranchesMade& r) {
  Nodes nodes;
  if (r.parent != kBase) {
    const BranchPtr parent = find(r.parent);
    if (!parent) return misfit("a branch of a parent that is not there");
    nodes = parent->tree.nodes;
    parent->tree.epoch = r.parentEpoch;
  }
  for (const auto& one : r.made) {
    auto branch = std::make_shared<Branch>();
    branch->id = one.id;
    branch->parent = r.parent;
    branch->name = one.name;
    branch->group = r.group;
    branch->exclusive = r.exclusive;
    branch->createdMs = r.createdMs;
    branch->tree = Tree{nodes, one.epoch};
    branch->point = nodes;
    branch->origin = nodes;
    branch->order = one.epoch;
    branch->log = log;
    branches.insert_or_assign(one.id, std::move(branch));
  }
  return Done{};
}

Result<> Ledger::on(const PointMoved& r) {
  const BranchPtr branch = find(r.branch);
  if (!branch) return misfit("a point of a branch that is not there");
  branch->foldAdopted();
  bough::apply(branch->point, r.point);
  bough::apply(branch->tree.nodes, r.tree);
  if (r.epoch != 0) branch->tree.epoch = r.epoch;
  if (!r.point.empty() || !r.tree.empty()) countEdit(*branch);
  return Done{};
}

Result<> Ledger::on(const Rebased& r) {
  const BranchPtr branch = find(r.branch);
  if (!branch) return misfit("a rebase of a branch that is not there");
  Nodes nodes;
  branch->parent = r.parent;
  if (r.parent != kBase) {
    const BranchPtr parent = find(r.parent);
    if (!parent) return misfit("a rebase onto a parent that is not there");
    nodes = parent->tree.nodes;
    parent->tree.epoch = r.parentEpoch;
  }
  branch->adopted.clear();
  branch->origin = nodes;
  branch->point = nodes;
  bough::apply(branch->point, r.change.settles);
  branch->tree = Tree{branch->point, r.epoch};
  bough::apply(branch->tree.nodes, r.change.edits);
  branch->state = BranchState::Live;
  countEdit(*branch);
  return Done{};
}

void Ledger::finishCommit(Branch& child, CommitEntry entry) {
  child.tree.epoch = entry.facts.epoch;
  child.commitId = entry.facts.id;
  if (entry.facts.partial) {
    child.foldAdopted();
    bough::apply(child.point, entry.facts.point);
    countEdit(child);
  } else {
    child.state = BranchState::Committed;
    child.committedInto = entry.facts.into;
  }
  for (const BranchId& id : entry.facts.superseded) {
    if (const BranchPtr sibling = find(id)) sibling->state = BranchState::Superseded;
  }
  commits.push_back(std::move(entry));
}

Result<> Ledger::on(const CommittedIntoBranch& r) {
  const BranchPtr child = find(r.facts.branch);
  const BranchPtr parent = find(r.facts.into);
  if (!child || !parent) return misfit("a commit of or into a branch that is not there");
  CommitEntry entry{r.facts, {}, {}, 0, 0, {}, false};
  if (r.adopt) {
    child->foldAdopted();
    entry.before = child->point;  // what the parent had, with what the child settled on top
    parent->adopted.push_back({child->point, child->origin});
    parent->tree.nodes = child->tree.nodes;
  } else {
    if (!r.merged.settles.empty()) parent->foldAdopted();
    bough::apply(parent->point, r.merged.settles);
    bough::apply(parent->tree.nodes, r.merged.settles);
    entry.before = parent->tree.nodes;
    bough::apply(parent->tree.nodes, r.merged.edits);
  }
  parent->tree.epoch = r.parentEpoch;
  countEdit(*parent);
  entry.after = parent->tree.nodes;
  finishCommit(*child, std::move(entry));
  return Done{};
}

Result<> Ledger::on(const CommittedIntoBase& r) {
  const BranchPtr child = find(r.facts.branch);
  if (!child) return misfit("a commit of a branch that is not there");
  finishCommit(*child, CommitEntry{r.facts, {}, {}, r.txn, r.firstRoot, r.items, false});
  pin(r.pins);
  return Done{};
}

Result<> Ledger::on(const CommitUndone& r) {
  CommitEntry* entry = findCommit(r.commit);
  if (!entry) return misfit("an undo of a commit that is not there");
  const CommitFacts facts = entry->facts;
  if (r.txn == 0) {
    commits.erase(commits.begin() + (entry - commits.data()));
  } else {
    entry->forgotten = true;
    CommitEntry undo{facts, {}, {}, r.txn, r.firstRoot, entry->items, true};
    undo.facts.id = "undo-" + facts.id;
    commits.push_back(std::move(undo));
  }
  if (const BranchPtr parent = find(facts.into)) {
    bough::apply(parent->tree.nodes, r.parentEdits);
    parent->tree.epoch = r.parentEpoch;
    countEdit(*parent);
  }
  pin(r.pins);
  if (const BranchPtr child = find(facts.branch)) {
    if (facts.partial) {
      if (child->state == BranchState::Live) {
        child->foldAdopted();
        bough::apply(child->point, facts.pointBack);
      }
    } else {
      child->state = BranchState::Live;
      child->committedInto.clear();
    }
    child->commitId.clear();
    countEdit(*child);
  }
  for (const BranchId& id : facts.superseded) {
    const BranchPtr sibling = find(id);
    if (sibling && sibling->state == BranchState::Superseded) sibling->state = BranchState::Live;
  }
  return Done{};
}

Result<> Ledger::on(const CommitForgotten& r) {
  CommitEntry* entry = findCommit(r.commit);
  if (!entry) return Done{};
  if (entry->txn != 0 && !entry->forgotten) {
    entry->forgotten = true;
  } else {
    commits.erase(commits.begin() + (entry - commits.data()));
  }
  return Done{};
}

Result<> Ledger::on(const BranchesGone& r) {
  for (const BranchId& id : r.branches) {
    branches.erase(id);
    std::erase_if(commits, [&](const CommitEntry& entry) { return entry.facts.into == id; });
  }
  return Done{};
}

Result<> Ledger::on(const Renamed& r) {
  const BranchPtr branch = find(r.branch);
  if (!branch) return misfit("a name of a branch that is not there");
  branch->name = r.name;
  return Done{};
}

Result<> Ledger::on(const Mounted& r) {
  const BranchPtr branch = find(r.branch);
  if (!branch) return misfit("a mount of a branch that is not there");
  branch->mountAt = r.at;
  branch->mountFolder = r.folder;
  branch->mountNode = r.node;
  return Done{};
}

Result<> Ledger::on(const Counters& r) {
  counters = r;
  return Done{};
}

Result<> Ledger::on(const Synced&) { return Done{}; }

void Ledger::pin(const std::vector<Pin>& pins) {
  // A parent that had not changed since a branch point has not changed by this either.
  std::vector<std::pair<Branch*, Branch*>> same;
  for (const auto& [id, branch] : branches) {
    const BranchPtr parent = find(branch->parent);
    if (parent && parent->tree.nodes.sameAs(branch->origin)) same.emplace_back(branch.get(), parent.get());
  }
  for (const Pin& one : pins) {
    if (const BranchPtr branch = find(one.owner)) {
      branch->foldAdopted();
      bough::apply(branch->point, one.point);
      bough::apply(branch->tree.nodes, one.tree);
    } else if (CommitEntry* entry = findCommit(one.owner)) {
      bough::apply(entry->before, one.tree);
      bough::apply(entry->after, one.point);
    }
  }
  for (const auto& [branch, parent] : same) branch->origin = parent->tree.nodes;
}

}  // namespace bough
