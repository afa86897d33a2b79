// The journal of one transaction: what is planned, what was decided, what was done. Format: docs/commit-journal.md.
// Used by base_commit (writing while it runs, reading after a crash) and undo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/commit/place.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::base_commit {

struct PlannedItem {
  enum class Type : std::uint8_t { Put, Remove, Meta } type = Type::Put;
  std::string path;
  bool beside = false;    // staged beside the target because the journal folder is on another file system
  bool replaces = false;  // something is at `path` before (always for Remove and Meta)
  Kind oldKind = Kind::File;
  Identity old;
  FolderMeta oldMeta;  // Meta: everything; else nothing
  FolderMeta becomes;  // Meta
};

/// A folder in which names are put, replaced or removed.
struct PlannedFolder {
  std::string path;
  Identity identity;         // its mtime is the one to restore
  bool onlyReplaced = true;  // no name comes or goes, and no Meta sets its mtime: it keeps its mtime
  bool beside = false;
};

struct Prepared {
  Txn txn = 0;
  Txn undoOf = 0;
  std::uint32_t firstRoot = 0;
  std::uint64_t tag = 0;  // random: makes staging names unlike any other
  Identity base;
  std::string note;
  std::vector<PlannedItem> items;
  std::vector<PlannedFolder> folders;
};

/// What was staged for an item, as it is known by after the swap.
struct StagedItem {
  bool present = false;  // a Put that was not left out
  Kind kind = Kind::File;
  Identity identity;
  /// Beside, the old thing is a folder: the digest of everything below it when it was copied to `kept`.
  std::optional<std::uint64_t> keptDigest;
};

struct Decided {
  std::vector<StagedItem> items;
  std::vector<NotApplied> notApplied;
};

struct Applied {
  std::string boot;  // the machine's boot: the swaps are certain until the next one
  std::vector<ItemOutcome> items;
  std::vector<std::pair<std::string, Time>> folders;  // mtimes of the folders as the transaction left them
  std::vector<NotApplied> notApplied;
  std::vector<std::string> raced;
};

enum class RecordType : std::uint8_t {
  Prepared = 1,
  Decided = 2,
  Reverting = 3,
  RolledBack = 4,
  Applied = 5,
  Done = 6,
  Acknowledged = 7,
};

/// Everything that a journal says.
struct Journal {
  std::optional<Prepared> prepared;
  std::optional<Decided> decided;
  std::optional<Applied> applied;
  bool reverting = false;
  bool rolledBack = false;
  bool done = false;
  bool acknowledged = false;
};

std::string encode(const Prepared&);
std::string encode(const Decided&);
std::string encode(const Applied&);

/// The journal file, open for appending records.
class JournalFile {
 public:
  /// Makes the file and reserves `bytes` for it, so that deciding does not fail for want of space.
  static Result<JournalFile> create(int folderFd, std::uint64_t bytes);
  static Result<JournalFile> open(int folderFd);

  /// Reads all whole records; a torn one at the end is cut off. Bytes that no crash explains are E_STORE_DAMAGED.
  Result<Journal> load();
  Result<> append(RecordType type, const std::string& payload = {});
  Result<> sync();

 private:
  UniqueFd fd_;
  std::uint64_t end_ = 0;
};

inline constexpr const char* kJournalName = "journal";
inline constexpr const char* kKeptName = "kept";

/// ".bough-stage-<txn>-<tag>-<item>".
std::string stagingName(const Prepared& prepared, std::size_t item);

/// The running kernel's boot id.
std::string bootId();

}  // namespace bough::base_commit
