// What a store tells and is asked: plain values, no locks. The control server turns them into JSON; tests use them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "native/branchfs/branch.h"
#include "native/branchfs/model.h"

namespace bough {

struct StoreOptions {
  std::string folder;              // made if it is not there
  std::string base;                // absolute
  std::vector<std::string> hide;   // globs, see HideRules
  std::vector<std::string> never;  // absolute folders that no branch shows
};

struct BranchInfo {
  BranchId id, parent;
  std::string name;
  std::uint64_t group = 0;
  bool exclusive = false;
  BranchState state = BranchState::Live;
  std::int64_t createdMs = 0;
  std::vector<BranchId> children;
  std::string mountAt;      // empty: not mounted
  std::string mountFolder;  // what of the branch the mount shows; empty: all
  std::uint64_t edits = 0;
  BranchId committedInto;
  std::string commit;
};

struct BranchPlan {
  BranchId parent;
  std::uint32_t count = 1;
  bool exclusive = true;
  std::vector<std::string> names;
  bool flush = false;  // writes dirty pages of the parent's shared mappings back first
};
struct MadeBranches {
  std::uint64_t group = 0;
  std::vector<BranchInfo> branches;
  std::uint64_t pauseUs = 0;  // how long the parent stood still
};

enum class ChangeKind : std::uint8_t { Added, Modified, Deleted, Renamed };

/// One line of a diff. Of a side where nothing is, size, mode and target are zero or empty.
struct FileChange {
  std::string path;
  ChangeKind kind = ChangeKind::Modified;
  Kind type = Kind::File;  // after; of a deletion, before
  std::string from;        // Renamed
  int similarity = 100;    // Renamed: percent
  bool content = false, mode = false, owner = false, xattr = false, target = false, typeChanged = false;
  bool binary = false;
  bool lineEndingOnly = false;
  std::uint64_t sizeBefore = 0, sizeAfter = 0;
  std::uint32_t modeBefore = 0, modeAfter = 0;
  std::string targetBefore, targetAfter;
};

struct Drift {
  std::vector<std::string> changed;  // paths of the diff that the parent changed too
  std::uint64_t others = 0;          // other paths that the parent changed
};

struct DiffPage {
  std::vector<FileChange> changes;
  std::size_t total = 0;
  Drift drift;
};

/// Which state of a file is asked for: the branch's, the one it started from, or its parent's as it is now.
enum class Side : std::uint8_t { Branch, Point, Parent };

struct FileStat {
  Kind type = Kind::File;
  std::uint64_t size = 0;
  std::uint32_t mode = 0, uid = 0, gid = 0;
  Time mtime, ctime;
  std::string target;
};
struct ListedName {
  std::string name;
  Kind type = Kind::File;
};
struct ReadPiece {
  std::string data;
  std::uint64_t size = 0;  // of the whole file
  bool eof = false;
};

enum class ConflictReason : std::uint8_t {
  BothChanged,
  AddedInBoth,
  DeletedInParent,
  ChangedInParent,
  Type,
  ParentMissing,
};
struct ConflictSide {
  std::optional<Kind> type;  // nothing is there
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  bool binary = false;
};
struct Conflict {
  std::string path;
  ConflictReason reason = ConflictReason::BothChanged;
  ConflictSide base, ours, theirs;
};
/// The data of an Error with code E_CONFLICT, E_UNDO_CONFLICT or E_READ_ONLY, beside the error itself.
struct Refusal {
  std::vector<Conflict> conflicts;
  std::vector<std::string> paths;
};

struct LeftOut {
  std::string path, what, why;
};
struct CommitResult {
  std::string commit;
  BranchId into;
  std::uint64_t paths = 0;
  std::vector<BranchId> superseded;
  bool partial = false;
  std::vector<LeftOut> notApplied;
  std::uint64_t tookUs = 0;
};
struct CommitInfo {
  std::string commit;
  BranchId branch, into;
  std::int64_t atMs = 0;
  std::uint64_t paths = 0;
  bool undoable = true;
};

enum class Take : std::uint8_t { Ours, Theirs, Content };

struct StoreStatus {
  std::uint64_t bytes = 0, objects = 0, logBytes = 0, branches = 0, mounts = 0, commits = 0, freeBytes = 0;
};

struct BranchEvent {
  BranchInfo branch;
};
struct GoneEvent {
  std::vector<BranchId> branches;
};
struct EditsEvent {
  BranchId branch;
  std::uint64_t edits = 0;
};
struct DriftEvent {};
using StoreEvent = std::variant<BranchEvent, GoneEvent, EditsEvent, DriftEvent>;
using EventSink = std::function<void(const StoreEvent&)>;

}  // namespace bough
