// Commits into the base. The base is changed by commit/, journalled; the store's record follows. See store.h.
#include "native/branchfs/store_base_commit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "native/branchfs/base_items.h"
#include "native/branchfs/commit/find_names.h"
#include "native/branchfs/delta.h"
#include "native/branchfs/pins.h"
#include "native/branchfs/store.h"
#include "native/branchfs/store_merge.h"
#include "native/common/fail_point.h"
#include "native/common/log.h"

namespace bough {
namespace {

constexpr int kTries = 4;

const std::string& pathOf(const Item& item) {
  return std::visit([](const auto& one) -> const std::string& { return one.path; }, item);
}

Conflict conflictOf(const CommitConflict& one) {
  Conflict conflict;
  conflict.path = one.path;
  conflict.reason = ConflictReason::ChangedInParent;
  if (one.why == CommitConflict::Why::Appeared) conflict.reason = ConflictReason::AddedInBoth;
  if (one.why == CommitConflict::Why::Vanished) conflict.reason = ConflictReason::DeletedInParent;
  return conflict;
}

}  // namespace

Error refusedBy(Outcome& outcome, Refusal& refusal) {
  Error error = *outcome.error;
  for (const CommitConflict& one : outcome.conflicts) {
    refusal.conflicts.push_back(conflictOf(one));
    refusal.paths.push_back(one.path);
  }
  if (!outcome.errorPath.empty() && refusal.paths.empty()) refusal.paths.push_back(outcome.errorPath);
  if (error.code == "E_COMMIT_STUCK") error.code = "E_IO";
  return error;
}

std::vector<BaseMove> movesOf(const Outcome& outcome, const KnownByPath& known, const Base& base) {
  std::vector<BaseMove> moves;
  for (const ItemOutcome& item : outcome.items) {
    if (item.leftOut) continue;
    BaseMove move{item.path, item.root, kNoNode, nullptr};
    if (const auto found = known.find(item.path); found != known.end()) {
      move.oldId = found->second.id;
      auto old = std::make_shared<Node>(*found->second.node);
      old->entries = Entries();
      if (item.root != 0) {
        if (old->content.where == Content::Where::Base) old->content.base = BaseRef{item.root, ""};
        if (old->hasUnder) old->under = BaseRef{item.root, ""};
      }
      move.old = std::move(old);
    } else if (item.root != 0) {
      if (const auto node = nodeOfKept(base, item.root)) {
        move.old = node->second;
        move.oldId = node->first;
      }
    }
    moves.push_back(std::move(move));
  }
  return moves;
}

std::string encodeNote(const Record& record, const KnownByPath& known) {
  Encoder out;
  encode(out, record);
  out.number(known.size());
  for (const auto& [path, one] : known) {
    out.bytes(path);
    out.number(one.id);
    encodeNode(out, *one.node);
  }
  return out.take();
}

std::optional<CommitNote> decodeNote(const std::string& bytes, const LeaseOf& leaseOf) {
  Decoder in(bytes);
  CommitNote note{decodeRecord(in, leaseOf), {}};
  for (std::size_t left = in.count(); left > 0 && in.ok(); left--) {
    std::string path = in.bytes();
    const NodeId id = in.number();
    note.known.emplace(std::move(path), Known{id, std::make_shared<Node>(decodeNode(in, leaseOf))});
  }
  if (!in.ok()) return std::nullopt;
  return note;
}

std::optional<std::pair<NodeId, NodePtr>> nodeOfKept(const Base& base, std::uint32_t root) {
  const BaseRef ref{root, ""};
  const auto stat = base.stat(ref);
  if (!stat) return std::nullopt;
  auto node = std::make_shared<Node>();
  node->kind = stat->kind;
  node->mode = stat->mode;
  node->uid = stat->uid;
  node->gid = stat->gid;
  node->rdev = stat->rdev;
  node->nlink = stat->kind == Kind::Directory ? stat->nlink : 1;
  node->size = stat->size;
  node->atime = stat->atime;
  node->mtime = stat->mtime;
  node->ctime = stat->ctime;
  node->btime = stat->btime;
  node->identity = stat->identity();
  if (const auto xattrs = base.xattrs(ref)) node->xattrs = *xattrs;
  if (stat->kind == Kind::Symlink) {
    if (const auto target = base.readlink(ref)) node->target = *target;
  }
  if (stat->kind == Kind::File) {
    node->content.where = Content::Where::Base;
    node->content.base = ref;
  }
  if (stat->kind == Kind::Directory) {
    node->hasUnder = true;
    node->under = ref;
  }
  return std::pair<NodeId, NodePtr>{base.idOf(*stat), std::move(node)};
}

Result<UniqueFd> Store::baseFolder() const {
  UniqueFd fd(::open(options_.base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    return Error{
        errno, "E_BASE_GONE",
        "The base folder " + options_.base + " is not there: " + std::strerror(errno) + ". Put it back first."};
  }
  // By its path alone an empty mount point, or a folder made anew, would look like one in which everything was deleted.
  struct stat found{};
  const auto branched = base_->identityOf(BaseRef{});
  if (::fstat(fd.get(), &found) != 0 || !branched || branched->dev != found.st_dev || branched->ino != found.st_ino) {
    return Error{ENOENT, "E_BASE_GONE",
                 "In the place of the base folder " + options_.base +
                     " is another one. Nothing was changed. Mount it or put it back first."};
  }
  return fd;
}

Result<CommitResult> Store::commitIntoBase(const BranchPtr& child, const std::vector<std::string>& paths,
                                           Refusal& refusal) {
  const std::lock_guard oneAtATime(commitLock_);
  BOUGH_ASSIGN(const UniqueFd base, baseFolder());
  // What is committed is the branch as it is at this instant; who writes on writes into copies.
  Sides sides;
  {
    const std::lock_guard guard(lock_);
    const std::unique_lock hold(child->lock);
    BOUGH_TRY(mustBeLive(*child));
    child->foldAdopted();
    BOUGH_TRY(record(PointMoved{child->id, {}, {}, log_.newEpoch()}));
    sides = {child->point, child->tree.nodes};
  }
  BOUGH_ASSIGN(const Sides whole, withAllNames(base.get(), sides));
  for (int attempt = 1;; attempt++) {
    BOUGH_ASSIGN(Prepared prepared, prepare(whole, Nodes(), paths));
    BOUGH_TRY(refuseConflicts(prepared, refusal));
    const NodeCompare compare(*base_, *objects_);
    const auto result = View::ofNodes(std::make_shared<Branch>(), prepared.merged.result, *base_, *objects_);
    BaseItems items(*result, *base_, *objects_);
    Transaction transaction;
    BOUGH_ASSIGN(transaction.items,
                 items.from(prepared.theirs, changesBetween(prepared.theirs, prepared.merged.result, compare)));
    if (items.removesFolders()) {
      // Once more, now that digests are taken: what came into those folders before must be seen here, what comes
      // later the digests see.
      BOUGH_ASSIGN(prepared, prepare(whole, Nodes(), paths));
      BOUGH_TRY(refuseConflicts(prepared, refusal));
    }
    CommittedIntoBase made;
    made.facts.id = "c" + std::to_string(log_.newCommit());
    made.facts.branch = child->id;
    made.facts.into = kBase;
    made.facts.atMs = nowMs();
    made.facts.partial = !paths.empty();
    made.facts.epoch = log_.newEpoch();
    fillFacts(prepared, paths, made.facts);
    auto done = runInBase(base.get(), *child, sides, prepared, std::move(made), std::move(transaction), refusal);
    // Something moved between our look and the journal's: look again, it will be a conflict by name.
    if (!done && done.error().code == "E_CONFLICT" && attempt < kTries) {
      refusal = Refusal();
      continue;
    }
    return done;
  }
}

Result<Store::Sides> Store::withAllNames(int base, const Sides& sides) {
  const NodeCompare compare(*base_, *objects_);
  std::set<std::uint64_t> inodes;
  std::optional<Names> names;
  for (const NodeDelta& node : deltaOf(sides.before, sides.after).nodes) {
    if (!node.before || !node.after || node.before->kind == Kind::Directory) continue;
    if (node.before->nlink < 2 || !node.before->identity.known) continue;
    if (!names) names.emplace(sides.before);
    if (names->of(node.id).size() >= node.before->nlink || !compare.compare(*node.before, *node.after).any()) continue;
    inodes.insert(node.before->identity.ino);
  }
  if (inodes.empty()) return sides;
  std::set<std::pair<std::uint64_t, std::uint64_t>> skip;
  struct stat own{};
  if (::fstat(folder_.get(), &own) == 0) skip.emplace(own.st_dev, own.st_ino);
  BOUGH_ASSIGN(const auto found, findNames(base, inodes, skip));
  std::vector<std::string> paths;
  for (const auto& [inode, some] : found) paths.insert(paths.end(), some.begin(), some.end());
  BOUGH_ASSIGN(Nodes before, settled(sides.before, paths));
  BOUGH_ASSIGN(Nodes after, settled(sides.after, paths));
  return Sides{std::move(before), std::move(after)};
}

Result<CommitResult> Store::runInBase(int base, Branch& child, const Sides& sides, const Prepared& prepared,
                                      CommittedIntoBase made, Transaction transaction, Refusal& refusal) {
  for (const Item& item : transaction.items) made.items.push_back(pathOf(item));
  std::vector<LeftOut> notApplied;
  BaseHold hold;
  if (!transaction.items.empty()) {
    made.txn = transaction.txn = log_.newTxn();
    made.firstRoot = transaction.firstRoot = log_.newRoots(transaction.items.size());
    BOUGH_TRY(log_.reserveNow());
    const KnownByPath known = knownOf(prepared.theirs);
    transaction.note = encodeNote(made, known);
    transaction.decided = [&] { hold = holdAll(); };
    failPoint("store.base.begin");
    Outcome outcome = baseCommit_->commit(base, transaction);
    if (!outcome.committed()) {
      hold = BaseHold();
      return refusedBy(outcome, refusal);
    }
    failPoint("store.base.swapped");
    for (const NotApplied& one : outcome.notApplied) notApplied.push_back({one.path, one.what, one.reason});
    if (!hold.store.owns_lock()) hold = holdAll();
    BOUGH_ASSIGN(made.pins, pinsFor(movesOf(outcome, known, *base_), known, made.facts));
  } else {
    hold = holdAll();
  }
  if (!made.facts.partial && !child.tree.nodes.sameAs(sides.after)) {
    // Somebody wrote on while it was committed. That work stays in a live branch which has the rest in common with the
    // base.
    made.facts.partial = true;
    made.facts.point = difference(sides.before, sides.after);
    made.facts.pointBack = difference(sides.after, sides.before);
  }
  if (!made.facts.partial) made.facts.superseded = losersOf(child);
  BOUGH_TRY(record(made, true));
  failPoint("store.base.logged");
  hold = BaseHold();
  BOUGH_TRY(log_.syncAll());
  if (made.txn != 0) BOUGH_TRY(baseCommit_->acknowledge(made.txn));
  return CommitResult{made.facts.id,         kBase, made.facts.paths, made.facts.superseded, made.facts.partial,
                      std::move(notApplied), 0};
}

Store::BaseHold Store::holdAll() {
  BaseHold hold;
  hold.store = std::unique_lock(lock_);
  for (const auto& [id, branch] : ledger_.branches) hold.branches.emplace_back(branch->lock);
  return hold;
}

Result<std::vector<Pin>> Store::pinsFor(std::vector<BaseMove> moves, const KnownByPath& known,
                                        const CommitFacts& facts) {
  Pins pins(std::move(moves), known,
            [this](const Nodes& nodes, const std::vector<std::string>& paths) { return settled(nodes, paths); });
  std::vector<Pin> result;
  const auto add = [&result](Pin pin) {
    if (!pin.tree.empty() || !pin.point.empty()) result.push_back(std::move(pin));
  };
  for (const auto& [id, branch] : ledger_.branches) {
    branch->foldAdopted();
    Nodes point = branch->point;
    if (id == facts.branch) apply(point, facts.point);
    BOUGH_ASSIGN(Pin pin, pins.of(id, branch->tree.nodes, point, id != facts.branch));
    add(std::move(pin));
  }
  for (const CommitEntry& entry : ledger_.commits) {
    BOUGH_ASSIGN(Pin pin, pins.of(entry.facts.id, entry.before, entry.after, false));
    add(std::move(pin));
  }
  return result;
}

Result<> Store::finishCommits() {
  const auto base = baseFolder();
  if (!base) return base.error();
  BOUGH_ASSIGN(const std::vector<Recovered> found, baseCommit_->recover(base->get()));
  for (const Recovered& one : found) {
    if (one.outcome.committed()) {
      auto note = decodeNote(one.note, leaseOf());
      if (!note) return Error{EIO, "E_STORE_DAMAGED", "A commit into the base left a note that makes no sense."};
      BOUGH_TRY(adoptRecovered(one, *note));
      logLine("a commit into the base that was interrupted is complete now");
    }
    BOUGH_TRY(log_.syncAll());
    BOUGH_TRY(baseCommit_->acknowledge(one.txn));
  }
  return Done{};
}

Result<> Store::adoptRecovered(const Recovered& recovered, CommitNote& note) {
  const std::vector<BaseMove> moves = movesOf(recovered.outcome, note.known, *base_);
  if (auto* made = std::get_if<CommittedIntoBase>(&note.record)) {
    const BranchPtr child = ledger_.find(made->facts.branch);
    if (!child || ledger_.findCommit(made->facts.id)) return Done{};  // the record got through
    BOUGH_ASSIGN(made->pins, pinsFor(moves, note.known, made->facts));
    if (!made->facts.partial) made->facts.superseded = losersOf(*child);
    return record(*made, true);
  }
  if (auto* undone = std::get_if<CommitUndone>(&note.record)) {
    const CommitEntry* entry = ledger_.findCommit(undone->commit);
    if (!entry || entry->forgotten) return Done{};
    BOUGH_ASSIGN(undone->pins, pinsFor(moves, note.known, CommitFacts{}));
    return record(*undone, true);
  }
  return Done{};
}

}  // namespace bough
