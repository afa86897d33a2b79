// The order of a commit's steps, live and after a crash. See base_commit.h for what it promises and
// docs/commit-journal.md for why the order is this one.
#include "native/branchfs/commit/base_commit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "native/branchfs/commit/apply.h"
#include "native/branchfs/commit/check.h"
#include "native/branchfs/commit/journal.h"
#include "native/branchfs/commit/place.h"
#include "native/branchfs/commit/plan.h"
#include "native/branchfs/commit/transactions.h"
#include "native/branchfs/commit/undo_plan.h"
#include "native/common/fail_point.h"
#include "native/common/log.h"

namespace bough {

using namespace base_commit;

namespace {

// Up to here sync() syncs folder by folder; for more the whole file system, once.
constexpr std::size_t kSyncFolders = 64;

Error baseGone() {
  return Error{ENOENT, "E_BASE_GONE",
               "The base folder is not there any more, or another folder is in its place. Nothing was changed. Put it "
               "back where it was and try again."};
}

Error storeError(int errnum) {
  if (errnum == ENOSPC || errnum == EDQUOT) {
    return Error{errnum, "E_NO_SPACE",
                 "The disk that holds the store is full, so the commit could not be written down. Nothing was changed. "
                 "Make room there and commit again."};
  }
  return Error{errnum, errnum == EROFS ? "E_READ_ONLY" : "E_IO",
               std::string("Writing the commit's journal in the store failed: ") + std::strerror(errnum) +
                   ". Nothing was changed. Mend the cause and commit again."};
}

Error rolledBack() {
  return Error{ECANCELED, "E_ROLLED_BACK",
               "boughfs ended before the commit was decided. Nothing was changed. Commit again."};
}

Error noSuchCommit(Txn txn) {
  return Error{ENOENT, "E_NO_COMMIT",
               "There is no commit number " + std::to_string(txn) +
                   " in this store: it was undone long ago, forgotten, "
                   "or never made."};
}

Error conflictError(bool undo, std::size_t count) {
  const std::string paths = count == 1 ? "1 path was" : std::to_string(count) + " paths were";
  if (undo) {
    return Error{EBUSY, "E_UNDO_CONFLICT",
                 paths +
                     " changed since the commit, so it cannot be undone as a whole. Nothing was changed. Keep or "
                     "move those changes away, then undo again."};
  }
  return Error{EBUSY, "E_CONFLICT",
               paths +
                   " changed in the base since the branch began. Nothing was changed. Rebase the branch or resolve "
                   "each of them, then commit again."};
}

/// An error that has no words yet gets those of its place.
Error worded(const Error& error, const std::string& what, const std::string& path) {
  return error.code.empty() ? pathError(error.errnum, what, path) : error;
}

bool baseIsThere(const Result<Found>& base) {
  return base && base->exists && base->kind == Kind::Directory && base->nlink > 0;
}

Outcome outcomeOf(const Applied& applied, const Prepared& prepared) {
  Outcome outcome;
  outcome.items = applied.items;
  for (std::size_t i = 0; i < outcome.items.size(); ++i) {
    outcome.items[i].stays = prepared.items[i].type == PlannedItem::Type::Meta;
    outcome.items[i].before = prepared.items[i].oldMeta;
  }
  outcome.notApplied = applied.notApplied;
  outcome.raced = applied.raced;
  return outcome;
}

Outcome failure(Error error, std::string path = {}) {
  Outcome outcome;
  outcome.error = std::move(error);
  outcome.errorPath = std::move(path);
  return outcome;
}

}  // namespace

struct BaseCommit::State {
  explicit State(UniqueFd journalDir) : transactions(std::move(journalDir)) {}

  Transactions transactions;
  std::mutex running;  // one transaction at a time
  UniqueFd lastBase;   // the base of the last call, for sync()

  Resolve resolver(int baseFd) const {
    return [this, baseFd](const BaseRef& ref) -> Result<std::pair<UniqueFd, std::string>> {
      if (ref.root == 0) {
        auto [folderPath, name] = splitPath(ref.path);
        BOUGH_ASSIGN(UniqueFd folder, openFolder(baseFd, folderPath, O_PATH));
        return std::pair<UniqueFd, std::string>(std::move(folder), std::move(name));
      }
      BOUGH_ASSIGN(auto place, transactions.keptPlace(ref.root));
      if (ref.path.empty()) return std::pair<UniqueFd, std::string>(std::move(place.first), std::move(place.second));
      auto [folderPath, name] = splitPath(joinPath(place.second, ref.path));
      BOUGH_ASSIGN(UniqueFd folder, openFolder(place.first.get(), folderPath, O_PATH));
      return std::pair<UniqueFd, std::string>(std::move(folder), std::move(name));
    };
  }

  void keepBase(int baseFd) { lastBase.reset(::fcntl(baseFd, F_DUPFD_CLOEXEC, 0)); }

  Outcome run(int baseFd, const Transaction& transaction, Txn undoOf);
  Outcome stageAndDecide(Folders& folders, const Found& journalDir, const Transaction& transaction, Txn undoOf,
                         Prepared prepared, const Folder& folder);
  Outcome apply(Folders& folders, JournalFile& file, const Prepared& prepared, const Decided& decided,
                const Folder& folder, Txn undoOf);
  Outcome takeBack(Application& application, JournalFile& file, const Error& why, const Prepared& prepared, Txn undoOf);
  Outcome giveUp(Folders& folders, const Prepared& prepared, Outcome outcome);

  Result<std::optional<Recovered>> recoverOne(int baseFd, Txn txn);
  Result<> finish(Folders& folders, JournalFile& file, Journal& journal, const Folder& folder);
  Result<> syncOne(int baseFd, Txn txn);
};

/// A transaction that was not decided and does not happen.
Outcome BaseCommit::State::giveUp(Folders& folders, const Prepared& prepared, Outcome outcome) {
  auto cleared = clearStaged(folders, prepared);
  if (!cleared) {
    // recover tries again: the journal stays.
    logLine("a commit that was given up left staging names behind: " +
            std::string(std::strerror(cleared.error().errnum)));
    return outcome;
  }
  auto gone = transactions.destroy(prepared.txn);
  if (!gone) logLine("the journal of a commit that was given up could not be deleted");
  return outcome;
}

Outcome BaseCommit::State::run(int baseFd, const Transaction& transaction, Txn undoOf) {
  if (auto valid = validate(transaction); !valid) return failure(valid.error());
  auto base = look(baseFd, "");
  if (!baseIsThere(base)) return failure(baseGone());
  auto journalDir = look(transactions.fd(), "");
  if (!journalDir) return failure(storeError(journalDir.error().errnum));

  Folders folders(baseFd);
  Checked checked;
  if (auto looked = check(folders, *journalDir, transaction, false, checked); !looked) {
    return failure(looked.error(), checked.errorPath);
  }
  if (!checked.conflicts.empty()) {
    Outcome outcome = failure(conflictError(undoOf != 0, checked.conflicts.size()));
    outcome.conflicts = std::move(checked.conflicts);
    return outcome;
  }
  Prepared prepared = plan(transaction, undoOf, checked, *base, *journalDir);
  auto folder = transactions.make(transaction.txn);
  if (!folder) {
    if (folder.error().errnum != EEXIST) return failure(storeError(folder.error().errnum));
    return failure(Error{EEXIST, "E_BAD_REQUEST", "The transaction's number was used before."});
  }
  return stageAndDecide(folders, *journalDir, transaction, undoOf, std::move(prepared), *folder);
}

Outcome BaseCommit::State::stageAndDecide(Folders& folders, const Found& journalDir, const Transaction& transaction,
                                          Txn undoOf, Prepared prepared, const Folder& folder) {
  failPoint("commit.begun");
  const auto storeFailed = [&](const Error& error) {
    return giveUp(folders, prepared, failure(storeError(error.errnum)));
  };
  auto file = JournalFile::create(folder.fd.get(), journalBytes(prepared));
  if (!file) return storeFailed(file.error());
  if (auto written = file->append(RecordType::Prepared, encode(prepared)); !written)
    return storeFailed(written.error());
  bool beside = false;
  for (const PlannedFolder& one : prepared.folders) beside = beside || one.beside;
  if (beside) {
    // Names are about to appear in the base; after a power cut the plan must be there to find them again. What is
    // staged inside the store goes with it.
    if (auto synced = file->sync(); !synced) return storeFailed(synced.error());
    if (auto synced = transactions.syncNames(folder); !synced) return storeFailed(synced.error());
  }
  failPoint("commit.prepared");

  Staging staging(folders, folder.kept.get(), resolver(folders.root()));
  auto decided = staging.run(transaction, prepared);
  if (!decided) {
    return giveUp(folders, prepared,
                  failure(worded(decided.error(), "Preparing", staging.errorPath), staging.errorPath));
  }

  Checked again;
  auto looked = check(folders, journalDir, transaction, staging.linked, again);
  if (!looked) return giveUp(folders, prepared, failure(looked.error(), again.errorPath));
  if (!again.conflicts.empty()) {
    Outcome outcome = failure(conflictError(undoOf != 0, again.conflicts.size()));
    outcome.conflicts = std::move(again.conflicts);
    return giveUp(folders, prepared, std::move(outcome));
  }
  failPoint("commit.checked");

  if (auto synced = transactions.syncNames(folder); !synced) return storeFailed(synced.error());
  auto written = file->append(RecordType::Decided, encode(*decided));
  if (written) {
    failPoint("commit.deciding");
    written = file->sync();
    // Whether the record is on disk is unknown; this one says that it does not count.
    if (!written) (void)file->append(RecordType::Reverting).ok();
  }
  if (!written) return storeFailed(written.error());
  failPoint("commit.decided");
  transactions.learn(prepared.txn, {prepared.firstRoot, prepared.items.size(), false, false});
  if (transaction.decided) transaction.decided();
  return apply(folders, *file, prepared, *decided, folder, undoOf);
}

Outcome BaseCommit::State::apply(Folders& folders, JournalFile& file, const Prepared& prepared, const Decided& decided,
                                 const Folder& folder, Txn undoOf) {
  Application application(folders, folder.kept.get(), prepared, decided);
  auto done = application.swapAll(true);
  failPoint("commit.swapped.all");
  if (done) done = application.keepAll();
  if (!done) return takeBack(application, file, done.error(), prepared, undoOf);
  application.setFolderTimes();
  auto applied = application.outcome();
  if (!applied) return takeBack(application, file, applied.error(), prepared, undoOf);
  if (auto written = file.append(RecordType::Applied, encode(*applied)); !written) {
    // Everything is in place and decided; recover will look at it again and write this record.
    logLine("the journal could not be completed: " + std::string(std::strerror(written.error().errnum)));
  }
  failPoint("commit.applied");
  transactions.learn(prepared.txn, {prepared.firstRoot, prepared.items.size(), true, false});
  return outcomeOf(*applied, prepared);
}

/// The system refused a swap after the decision, or somebody changed a path in the last instant.
Outcome BaseCommit::State::takeBack(Application& application, JournalFile& file, const Error& why,
                                    const Prepared& prepared, Txn undoOf) {
  Outcome outcome = failure(worded(why, "Replacing", application.errorPath), application.errorPath);
  if (!application.conflicts.empty()) {
    outcome = failure(conflictError(undoOf != 0, application.conflicts.size()));
    outcome.conflicts = application.conflicts;
  }
  auto written = file.append(RecordType::Reverting);
  if (written) written = file.sync();
  failPoint("commit.reverting");
  auto reverted = application.revertAll();
  if (!reverted) {
    outcome.error = Error{reverted.error().errnum, "E_COMMIT_STUCK",
                          "The commit failed half way (" + outcome.error->message + ") and taking it back failed at " +
                              shown(application.errorPath) + ": " + std::strerror(reverted.error().errnum) +
                              ". Mend the cause and start boughfs again: it goes on from there."};
    outcome.errorPath = application.errorPath;
    return outcome;
  }
  failPoint("commit.reverted.all");
  if (auto gone = transactions.destroy(prepared.txn); !gone) {
    logLine("the journal of a commit that was taken back could not be deleted");
  }
  return outcome;
}

/// Forward after a crash: what was decided happens.
Result<> BaseCommit::State::finish(Folders& folders, JournalFile& file, Journal& journal, const Folder& folder) {
  Application application(folders, folder.kept.get(), *journal.prepared, *journal.decided);
  auto done = application.swapAll(false);
  if (done) done = application.keepAll();
  if (!done) {
    return Error{done.error().errnum, "E_COMMIT_STUCK",
                 "A commit that was decided before boughfs ended cannot be finished at " +
                     shown(application.errorPath) + ": " + std::strerror(done.error().errnum) +
                     ". Mend the cause and start boughfs again."};
  }
  application.setFolderTimes();
  BOUGH_ASSIGN(Applied applied, application.outcome());
  BOUGH_TRY(file.append(RecordType::Applied, encode(applied)));
  failPoint("commit.applied");
  journal.applied = std::move(applied);
  return Done{};
}

Result<std::optional<Recovered>> BaseCommit::State::recoverOne(int baseFd, Txn txn) {
  BOUGH_ASSIGN(const Folder folder, transactions.open(txn));
  auto file = JournalFile::open(folder.fd.get());
  if (!file && file.error().errnum != ENOENT) return file.error();
  Journal journal;
  if (file) {
    BOUGH_ASSIGN(journal, file->load());
  }
  if (!journal.prepared) {
    // It ended before the plan was written; nothing outside this folder was touched.
    BOUGH_TRY(transactions.destroy(txn));
    return std::optional<Recovered>();
  }
  const Prepared& prepared = *journal.prepared;
  Recovered recovered{txn, prepared.undoOf, prepared.firstRoot, prepared.note, {}};
  const bool certain = journal.done || journal.rolledBack || (journal.applied && journal.applied->boot == bootId());
  if (!certain) {
    auto base = look(baseFd, "");
    if (!baseIsThere(base) || !sameFile(base->identity, prepared.base)) return baseGone();
  }
  Folders folders(baseFd);

  if (journal.decided && !journal.rolledBack && !journal.reverting) {
    if (!certain) {
      transactions.learn(txn, {prepared.firstRoot, prepared.items.size(), false, false});
      if (auto finished = finish(folders, *file, journal, folder); !finished) {
        if (finished.error().code.empty()) return finished.error();
        recovered.outcome = failure(finished.error());
        return std::optional<Recovered>(std::move(recovered));
      }
    }
    transactions.learn(txn, {prepared.firstRoot, prepared.items.size(), true, journal.done});
    if (journal.acknowledged) return std::optional<Recovered>();
    recovered.outcome = outcomeOf(*journal.applied, prepared);
    return std::optional<Recovered>(std::move(recovered));
  }

  if (!journal.rolledBack) {
    if (journal.reverting && journal.decided) {
      Application application(folders, folder.kept.get(), prepared, *journal.decided);
      if (auto reverted = application.revertAll(); !reverted) {
        recovered.outcome =
            failure(Error{reverted.error().errnum, "E_COMMIT_STUCK",
                          "A commit that failed cannot be taken back at " + shown(application.errorPath) + ": " +
                              std::strerror(reverted.error().errnum) + ". Mend the cause and start boughfs again."},
                    application.errorPath);
        return std::optional<Recovered>(std::move(recovered));
      }
    }
    BOUGH_TRY(clearStaged(folders, prepared));
    BOUGH_TRY(file->append(RecordType::RolledBack));
    failPoint("commit.rolledback");
  }
  recovered.outcome = failure(rolledBack());
  return std::optional<Recovered>(std::move(recovered));
}

Result<> BaseCommit::State::syncOne(int baseFd, Txn txn) {
  BOUGH_ASSIGN(const Folder folder, transactions.open(txn));
  BOUGH_ASSIGN(JournalFile file, JournalFile::open(folder.fd.get()));
  BOUGH_ASSIGN(const Journal journal, file.load());
  if (!journal.prepared || !journal.applied || journal.done) return Done{};
  Folders folders(baseFd);
  if (journal.prepared->folders.size() <= kSyncFolders) {
    for (const PlannedFolder& planned : journal.prepared->folders) {
      auto fd = folders.open(planned.path);
      if (fd) BOUGH_TRY(syncFolder((*fd)->get()));
    }
    for (const PlannedItem& item : journal.prepared->items) {
      if (item.type != PlannedItem::Type::Meta) continue;
      auto fd = folders.open(item.path);
      if (fd) BOUGH_TRY(syncFolder((*fd)->get()));
    }
  } else {
    BOUGH_ASSIGN(const UniqueFd base, openFolder(baseFd, "", O_RDONLY));
    if (::syncfs(base.get()) != 0) return sys(errno);
  }
  BOUGH_TRY(syncFolder(folder.kept.get()));
  failPoint("commit.durable");
  BOUGH_TRY(file.append(RecordType::Done));
  BOUGH_TRY(file.sync());
  failPoint("commit.done");
  transactions.learn(txn, {journal.prepared->firstRoot, journal.prepared->items.size(), true, true});
  return Done{};
}

BaseCommit::BaseCommit(std::unique_ptr<State> state) : state_(std::move(state)) {}
BaseCommit::~BaseCommit() = default;

Result<std::unique_ptr<BaseCommit>> BaseCommit::open(UniqueFd journalDir) {
  auto state = std::make_unique<State>(std::move(journalDir));
  BOUGH_TRY(state->transactions.scan());
  return std::unique_ptr<BaseCommit>(new BaseCommit(std::move(state)));
}

Result<std::vector<Recovered>> BaseCommit::recover(int baseFd) {
  const std::lock_guard<std::mutex> guard(state_->running);
  state_->keepBase(baseFd);
  std::vector<Recovered> all;
  BOUGH_ASSIGN(const std::vector<Txn> numbers, state_->transactions.numbers());
  for (const Txn txn : numbers) {
    BOUGH_ASSIGN(auto recovered, state_->recoverOne(baseFd, txn));
    if (recovered) all.push_back(std::move(*recovered));
  }
  return all;
}

Outcome BaseCommit::commit(int baseFd, const Transaction& transaction) {
  const std::lock_guard<std::mutex> guard(state_->running);
  state_->keepBase(baseFd);
  return state_->run(baseFd, transaction, 0);
}

Outcome BaseCommit::undo(int baseFd, Txn txn, Transaction as) {
  const std::lock_guard<std::mutex> guard(state_->running);
  state_->keepBase(baseFd);
  const auto known = state_->transactions.find(txn);
  if (!known || !known->committed) return failure(noSuchCommit(txn));
  if (!baseIsThere(look(baseFd, ""))) return failure(baseGone());
  auto folder = state_->transactions.open(txn);
  if (!folder) return failure(noSuchCommit(txn));
  auto file = JournalFile::open(folder->fd.get());
  if (!file) return failure(storeError(file.error().errnum));
  auto journal = file->load();
  if (!journal) return failure(journal.error());
  if (!journal->prepared || !journal->applied) return failure(noSuchCommit(txn));
  Folders folders(baseFd);
  auto items = planUndo(*journal, folder->kept.get(), folders);
  if (!items) return failure(worded(items.error(), "Reading what was kept for undo in", "commit"));
  as.items = std::move(*items);
  return state_->run(baseFd, as, txn);
}

std::size_t BaseCommit::itemCount(Txn txn) const {
  const auto known = state_->transactions.find(txn);
  return known ? known->items : 0;
}

Result<> BaseCommit::acknowledge(Txn txn) {
  const std::lock_guard<std::mutex> guard(state_->running);
  auto folder = state_->transactions.open(txn);
  if (!folder) return noSuchCommit(txn);
  auto file = JournalFile::open(folder->fd.get());
  if (!file) return storeError(file.error().errnum);
  BOUGH_ASSIGN(const Journal journal, file->load());
  if (journal.rolledBack) return state_->transactions.destroy(txn);
  if (!journal.applied || journal.acknowledged) return Done{};
  auto written = file->append(RecordType::Acknowledged);
  failPoint("commit.acknowledged");
  if (!written) return storeError(written.error().errnum);
  return Done{};
}

Result<> BaseCommit::release(Txn txn) {
  const std::lock_guard<std::mutex> guard(state_->running);
  const auto known = state_->transactions.find(txn);
  if (!known || !known->committed) return noSuchCommit(txn);
  return state_->transactions.destroy(txn);
}

std::vector<Txn> BaseCommit::transactions() const { return state_->transactions.committed(); }

Result<UniqueFd> BaseCommit::openKept(std::uint32_t root) const {
  BOUGH_ASSIGN(const auto place, state_->transactions.keptPlace(root));
  UniqueFd fd(::openat(place.first.get(), place.second.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return sys(errno);
  return fd;
}

Result<> BaseCommit::sync() {
  const std::lock_guard<std::mutex> guard(state_->running);
  if (!state_->lastBase) return Done{};
  for (const Txn txn : state_->transactions.committed()) {
    const auto known = state_->transactions.find(txn);
    if (known && !known->done) BOUGH_TRY(state_->syncOne(state_->lastBase.get(), txn));
  }
  return Done{};
}

}  // namespace bough
