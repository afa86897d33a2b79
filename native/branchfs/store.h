// A store: all branches of one base folder, on disk (docs/store-format.md). The control server and the tests use it; it
// uses Views to serve and read branches, commit/ to change the base, fuse/ to mount.
//
// Its parts: store.cc (tables, small requests), store_open.cc (open, recovery, close), store_create.cc, store_abort.cc,
// store_mount.cc, store_upkeep.cc (the background thread), store_diff.cc and store_read.cc (reading), store_commit.cc
// (into a branch), store_base_commit.cc and store_pins.cc (into the base), store_undo.cc, store_rebase.cc,
// store_edit.cc (revert, take, resolve), store_check.cc.
//
// Locks: `lock_` (the tables, and whatever changes more than one branch) before any Branch::lock; only a holder of
// `lock_` takes more than one of those. `commitLock_` (one commit into the base at a time) before `lock_`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "native/branchfs/base.h"
#include "native/branchfs/branch_mount.h"
#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/ledger.h"
#include "native/branchfs/objects.h"
#include "native/branchfs/pins.h"
#include "native/branchfs/snapshot.h"
#include "native/branchfs/store_log.h"
#include "native/branchfs/store_types.h"
#include "native/branchfs/view.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

struct CommitNote;
struct PathChange;
struct Prepared;

class Store {
 public:
  /// Opens or makes a store, reads its snapshot and log, and finishes what a crash interrupted. Mounts nothing yet.
  /// E_STORE_BUSY, E_STORE_VERSION, E_STORE_DAMAGED, E_BASE_GONE, E_NO_SPACE, E_IO.
  static Result<std::unique_ptr<Store>> open(StoreOptions options);
  /// Leaves the folder as a crash would, but for what is written already.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Clean stop: unmounts everything (mounts stay remembered), folds the log into a snapshot.
  Result<> close();

  Result<MadeBranches> create(const BranchPlan& plan);
  std::vector<BranchInfo> list() const;
  Result<BranchInfo> info(const BranchId& id) const;
  Result<BranchInfo> rename(const BranchId& id, const std::string& name);
  /// Removes a branch with its committed and superseded children, `recursive`: also with live ones. Gives all that
  /// went.
  Result<std::vector<BranchId>> abort(const BranchId& id, bool recursive);

  /// Shows a branch at the folder `at`: all of it, or only its folder at the path `folder`. E_MOUNT, E_NO_PATH,
  /// E_BAD_REQUEST.
  Result<> mount(const BranchId& id, const std::string& at, const std::string& folder = {});
  Result<> unmount(const BranchId& id);
  /// Mounts what was mounted in the last run. A mount that cannot be had is logged and given up.
  void restoreMounts();
  /// The branch as a file system, the same one that a mount of it serves.
  Result<std::shared_ptr<View>> view(const BranchId& id);

  Result<DiffPage> diff(const BranchId& id, const BranchId& against, std::size_t from, std::size_t limit);
  Result<FileStat> stat(const BranchId& id, Side side, const std::string& path);
  Result<std::vector<ListedName>> readdir(const BranchId& id, Side side, const std::string& path);
  Result<ReadPiece> read(const BranchId& id, Side side, const std::string& path, std::uint64_t offset,
                         std::uint64_t length);

  Result<std::vector<Conflict>> conflicts(const BranchId& id, const std::vector<std::string>& paths);
  /// `seen`: the parent's text that went into `data`. If the parent has another one by now: E_MOVED, nothing is
  /// changed.
  Result<> resolve(const BranchId& id, const std::string& path, Take take, const std::string& data,
                   std::optional<std::uint32_t> mode, const std::optional<std::string>& seen = std::nullopt);
  Result<std::uint64_t> revert(const BranchId& id, const std::vector<std::string>& paths);
  Result<std::uint64_t> take(const BranchId& id, const BranchId& from, const std::vector<std::string>& paths);

  /// Empty `paths`: the whole branch. On E_CONFLICT and others `refusal` says more.
  Result<CommitResult> commit(const BranchId& id, const std::vector<std::string>& paths, Refusal& refusal);
  std::vector<CommitInfo> commits() const;
  Result<std::uint64_t> undo(const std::string& commit, Refusal& refusal);
  Result<> forget(const std::string& commit);
  Result<std::uint64_t> rebase(const BranchId& id, Refusal& refusal);

  Result<StoreStatus> status();
  /// What is wrong with the store; empty: nothing.
  std::vector<std::string> check();
  Result<> sync();

  /// Called from any thread without locks held; must not call back into the store.
  void onEvent(EventSink sink);

  const StoreOptions& options() const { return options_; }

 private:
  explicit Store(StoreOptions options);

  /// Remembers that the base was changed from outside.
  class DriftNote final : public WatchListener {
   public:
    void nameChanged(NodeId, const std::string&) override { seen_ = true; }
    void fileChanged(NodeId, const std::string&) override { seen_ = true; }
    void foldersMoved() override { seen_ = true; }
    void everythingChanged() override { seen_ = true; }
    bool take() { return seen_.exchange(false); }

   private:
    std::atomic<bool> seen_{false};
  };

  // store_open.cc
  Result<> openFolder();
  Result<> readAll();
  Result<> readLogs(std::uint64_t generation);
  Result<> finishCommits();
  void sweep();
  void stopMounts();
  Result<> fold(bool last);

  // store.cc
  Result<BranchPtr> branchOf(const BranchId& id) const;  // lock_ held
  Result<BranchPtr> find(const BranchId& id) const;      // takes lock_
  BranchInfo infoOf(const Branch& branch) const;         // lock_ held
  void emit(const StoreEvent& event);
  // store_mount.cc
  struct Shown {
    std::string folder;  // the path that was asked for; empty: all of the branch
    NodeId node = kNoNode;
    std::unique_ptr<Subtree> subtree;
  };
  Result<Shown> shownOf(Branch& branch, const std::string& folder, NodeId node);  // lock_ held
  Result<> mountShown(const BranchId& id, const std::string& at, const std::string& folder, NodeId node);

  std::shared_ptr<View> viewOf(const BranchPtr& branch);  // lock_ held
  /// Writes records as one and applies them; nothing is applied when the log fails. lock_ and the branches' are held.
  Result<> record(const std::vector<Record>& records, bool useReserve = false);
  Result<> record(const Record& one, bool useReserve = false);
  LeaseOf leaseOf();

  // store_upkeep.cc
  void upkeep();
  void tellEdits();
  void collectGarbage();
  void bury(std::vector<BranchPtr> dead, std::vector<std::shared_ptr<View>> views);

  // store_diff.cc
  struct Sides {
    Nodes before, after;
  };
  Sides sidesOf(Branch& branch);
  Result<Nodes> settled(const Nodes& nodes, const std::vector<std::string>& paths);
  /// Settles all below folders that only `nodes` has, so that a diff can name what is in them.
  Result<> spread(Nodes& nodes, const Nodes& other);
  Drift driftOf(Branch& branch, const std::vector<PathChange>& changes);
  Result<std::shared_ptr<View>> viewOn(const BranchId& id, Side side);

  // store_merge.cc
  Result<Prepared> prepare(Sides sides, const Nodes& parent, const std::vector<std::string>& paths);
  std::function<std::vector<std::string>(const std::string&)> namesIn(const Nodes& nodes);
  Nodes nodesOf(const BranchId& id) const;  // takes lock_; none for the base

  // store_commit.cc
  static std::int64_t nowMs();
  Result<BranchId> targetOf(const Branch& branch) const;       // lock_ held
  std::vector<BranchId> losersOf(const Branch& branch) const;  // lock_ held
  Result<> mustBeLive(const Branch& branch) const;
  Result<CommitResult> commitIntoBranch(const BranchPtr& child, const BranchPtr& parent,
                                        const std::vector<std::string>& paths, Refusal& refusal);
  Result<> refuseConflicts(const Prepared& prepared, Refusal& refusal) const;
  void fillFacts(const Prepared& prepared, const std::vector<std::string>& paths, CommitFacts& facts) const;
  /// Other nodes are in a branch's tree now: its transports drop what they cached. No locks held.
  void showReplaced(const BranchPtr& branch, const Nodes& before);
  void tell(const std::vector<BranchId>& ids);

  // store_base_commit.cc
  /// All branches stand still: nobody sees the base half changed.
  struct BaseHold {
    std::unique_lock<std::mutex> store;
    std::vector<std::unique_lock<std::shared_mutex>> branches;  // let go before the store's
  };
  BaseHold holdAll();
  /// A changed file of the base may have more names there than the branch has met: all of them, so that all change.
  Result<Sides> withAllNames(int base, const Sides& sides);
  Result<UniqueFd> baseFolder() const;
  Result<CommitResult> commitIntoBase(const BranchPtr& child, const std::vector<std::string>& paths, Refusal& refusal);
  Result<CommitResult> runInBase(int base, Branch& child, const Sides& sides, const Prepared& prepared,
                                 CommittedIntoBase made, Transaction transaction, Refusal& refusal);
  Result<std::vector<Pin>> pinsFor(std::vector<BaseMove> moves, const KnownByPath& known, const CommitFacts& facts);
  Result<> adoptRecovered(const Recovered& recovered, CommitNote& note);

  // store_edit.cc
  /// Applies what `make` thinks out, unless the branch changed meanwhile: then again.
  Result<> edit(const BranchPtr& branch, const std::function<Result<Change>(const Sides&)>& make);

  /// A file of the branch with other data, as mutations of its tree; `theirs` lends mode and owner to a new one.
  Result<Content> contentOf(const std::string& path, const std::string& data, Epoch epoch);
  Result<Mutation> seenIn(const Nodes& theirs, const std::string& path, const std::string& seen, Epoch epoch);
  Result<std::vector<Mutation>> written(const Nodes& tree, const Nodes& theirs, const std::string& path,
                                        const std::string& data, std::optional<std::uint32_t> mode, Epoch epoch);

  // store_undo.cc
  Result<std::uint64_t> undoInBranch(const CommitEntry& entry, Refusal& refusal);
  Result<std::uint64_t> undoInBase(const CommitEntry& entry, Refusal& refusal);
  void releaseKept();
  void releaseOrphans();

  StoreOptions options_;
  UniqueFd folder_, lockFile_;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Base> base_;
  std::unique_ptr<BaseCommit> baseCommit_;
  StoreLog log_;

  std::mutex commitLock_;
  mutable std::mutex lock_;
  Ledger ledger_;
  std::unordered_map<BranchId, std::shared_ptr<View>> views_;
  std::unordered_map<BranchId, std::shared_ptr<BranchMount>> mounts_;
  std::uint64_t generation_ = 0;
  std::set<std::uint64_t> logs_;  // generations on disk

  DriftNote drift_;
  std::mutex sinkLock_;
  EventSink sink_;
  std::unordered_map<BranchId, std::uint64_t> toldEdits_;  // upkeep thread only

  std::mutex upkeepLock_;
  std::condition_variable upkeepWake_;
  std::vector<BranchPtr> dead_;
  std::vector<std::shared_ptr<View>> deadViews_;
  bool stopping_ = false, closed_ = false;
  std::atomic<bool> keptMayGo_{false};  // what forgotten commits kept may be needed by nobody any more
  std::thread upkeep_;
};

}  // namespace bough
