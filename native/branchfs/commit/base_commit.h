// A journalled change of the base folder that happens whole or not at all, also across SIGKILL and a power cut, and can
// be undone exactly. Used by store for a commit into the base; knows nothing of branches. The format on disk and the
// order of the steps are in docs/commit-journal.md.
//
//   check every item's Expect → journal PREPARED → stage everything beside its target → check again → journal DECIDED
//   (the commit point) → swap each staged name with its target → move what was replaced to `kept` → journal APPLIED
//
// Any failure before DECIDED leaves the base as it was (contents, modes, owners, xattrs, mtimes also of folders). A
// failure after it is turned back in the same call where that is possible; a crash after it is finished by recover.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "native/branchfs/model.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

/// A transaction's number. The caller gives it and never uses it again.
using Txn = std::uint32_t;

/// Attributes of a folder that stays, or of a file that is expected. Values that are absent are left as they are, or
/// not compared.
struct FolderMeta {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<Time> mtime;  // set last, after everything else in this folder is done
  std::optional<Xattrs> xattrs;
};

/// What a path of the base has to be for the commit to go on.
struct Expect {
  enum class How : std::uint8_t {
    Absent,     // nothing is there
    SameFile,   // kind, dev, ino and (where both are known) btime are those of `identity`: contents do not matter
    Unchanged,  // SameFile; no folder: also size, mtime and ctime (see `attributes`). A folder: `since`, `digest`
  };
  How how = How::Absent;
  Kind kind = Kind::File;
  Identity identity;
  /// Unchanged, no folder: when only the ctime differs it is the same as long as these are (mtime is not used here). A
  /// ctime moves with every hard link too, also with those that a commit makes and takes back. Without a value: a
  /// ctime that differs is a change.
  std::optional<FolderMeta> attributes;
  /// Unchanged, folder: nothing below it, at any depth, has a ctime later than this. Without a value: not checked.
  std::optional<Time> since;
  /// Unchanged, folder: the digest of everything below it (see treeDigest). Without a value: not checked.
  std::optional<std::uint64_t> digest;
};

struct NamedNode;

/// A file, link, node or whole folder as the base shall have it. The library makes it, with all that belongs to it, and
/// reports what the system did not let it set (Outcome::notApplied).
struct NewNode {
  Kind kind = Kind::File;
  std::uint32_t mode = 0;  // permission bits, 07777
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t rdev = 0;
  Time atime, mtime;
  Xattrs xattrs;       // exactly these (names in "security." that the system adds itself stay)
  std::string target;  // Symlink
  /// File: writes the data (with its holes) to `fd`, an empty file opened for reading and writing. Empty: no data.
  std::function<Result<>(int fd)> fill;
  /// File, symlink, fifo, socket or device: not 0: all nodes of the transaction with this number are names of one file
  /// (the first one met is made, the others are hard links to it). A branch's node id serves.
  std::uint64_t linkKey = 0;
  /// No folder: a file that exists already, in the base (root 0) or kept, becomes this node by a hard link: same data,
  /// mode, owner, xattrs, times, inode. Where a link is not possible (other file system, no right to link, too many
  /// links) it is copied with all of these, and links among such copies are kept. The other fields except `kind` are
  /// not used. A rename of an unchanged base file is a Put with linkTo and a Remove.
  std::optional<BaseRef> linkTo;
  std::vector<NamedNode> children;  // Directory
};

struct NamedNode {
  std::string name;  // of any bytes
  NewNode node;
};

/// Makes `path` be `node`: a new path (Expect Absent) or in the place of what is there, of whatever kind.
struct Put {
  std::string path;
  Expect expect;
  NewNode node;
};
/// Takes `path` away, a folder with everything below it.
struct Remove {
  std::string path;
  Expect expect;
};
/// Changes a folder that stays (path "" is the base folder itself).
struct Meta {
  std::string path;
  Expect expect;   // SameFile
  FolderMeta was;  // what it has to be now (mtime is not compared); absent values are not checked
  FolderMeta becomes;
};
/// Paths are relative to the base, without leading or double slash; "." and ".." are no names.
using Item = std::variant<Put, Remove, Meta>;

struct Transaction {
  Txn txn = 0;
  /// The old thing at item i's path is kept as root `firstRoot + i` (BaseRef::root). The caller never reuses a number;
  /// `items.size()` numbers are taken. Not 0.
  std::uint32_t firstRoot = 0;
  std::string note;  // bytes that recover gives back; what they mean is the caller's business
  /// Parents before what is below them. No path twice, and no item below a Put or a Remove (what is below a new folder
  /// is in its `children`). Folders that hold items but have no Meta keep their mtime if only existing names were
  /// replaced in them, and get the present otherwise, as if the files had been written by hand.
  std::vector<Item> items;
  /// Called once when DECIDED is durable and nothing of the base has changed yet: the moment to lock whoever must not
  /// see half of it. May be empty.
  std::function<void()> decided;
};

/// One path that is not as expected.
struct CommitConflict {
  enum class Why : std::uint8_t {
    Appeared,      // expected absent, something is there
    Vanished,      // expected, nothing is there (or a folder above it is gone)
    Replaced,      // another file has the name now, or one of another kind
    Changed,       // the same file, changed: content, times, or a folder's mode, owner, xattrs
    BelowChanged,  // a folder to be removed or replaced: something below it changed (`path` is that one)
  };
  std::string path;
  Why why = Why::Changed;
};

/// Something that the system refused and the commit went on without.
struct NotApplied {
  std::string path;
  std::string what;    // "owner", "mode" (set-id bits without the owner), "xattr user.x", "node" (left out)
  std::string reason;  // for a person: the system's words
};

/// What an item left behind.
struct ItemOutcome {
  std::string path;
  std::uint32_t root = 0;  // not 0: the old thing is kept under this number (openKept)
  bool leftOut = false;    // a Put that the system does not allow at all (a device as a normal user)
  bool present = false;    // something is at `path` now
  Kind kind = Kind::File;
  Identity identity;                    // of what is at `path` now, if present
  FolderMeta attributes;                // likewise: mode, owner, xattrs
  std::optional<std::uint64_t> digest;  // folder made by a Put: of everything below it
  bool stays = false;                   // a Meta: the folder is the same one as before
  FolderMeta before;                    // a Meta: everything that the folder had before
};

/// How a transaction ended. Committed: `error` is empty. Otherwise the base is as it was, except with E_COMMIT_STUCK
/// (the system let us neither go on nor back; recover tries again).
///
/// Codes: E_CONFLICT (see `conflicts`) · E_UNDO_CONFLICT (likewise) · E_BASE_GONE · E_NO_SPACE · E_READ_ONLY (read-only
/// file system, no permission, immutable, a mount point: see `errorPath`) · E_BAD_REQUEST (the items break a rule
/// above) · E_COMMIT_STUCK · E_NO_COMMIT (undo, acknowledge, release: no such transaction) · E_IO (anything else, with
/// the system's words).
struct Outcome {
  std::optional<Error> error;
  std::string errorPath;  // the path that the error is about, if it is about one
  std::vector<CommitConflict> conflicts;
  std::vector<ItemOutcome> items;  // as many as the transaction's, in its order; only when committed
  std::vector<NotApplied> notApplied;
  /// Paths that somebody changed in the instant between the last check and the swap. What they wrote is in `kept`.
  std::vector<std::string> raced;
  bool committed() const { return !error.has_value(); }
};

/// What recover found out about a transaction that the caller has not acknowledged.
struct Recovered {
  Txn txn = 0;
  Txn undoOf = 0;  // not 0: this one undoes that one
  std::uint32_t firstRoot = 0;
  std::string note;
  Outcome outcome;  // error E_ROLLED_BACK: it did not happen
};

class BaseCommit {
 public:
  /// `journalDir`: the store's folder `commit/` (exists, mode 0700). Reads which transactions are there; touches
  /// nothing.
  static Result<std::unique_ptr<BaseCommit>> open(UniqueFd journalDir);
  ~BaseCommit();
  BaseCommit(const BaseCommit&) = delete;
  BaseCommit& operator=(const BaseCommit&) = delete;

  /// Finishes or takes back what a crash left. Call once after open, before anything reads the base. Harmless to
  /// repeat. Gives every transaction that is not acknowledged, also those that were complete. If the base is not there
  /// (E_BASE_GONE) nothing is touched and it can be called again later.
  Result<std::vector<Recovered>> recover(int baseFd);

  /// Runs a transaction. `baseFd`: the base folder (O_PATH will do). One at a time; others wait.
  Outcome commit(int baseFd, const Transaction& transaction);

  /// Takes back a committed transaction as a new one with number `as`: every path of it is again what it was, exact to
  /// mode, owner, mtime, xattrs, links and holes (ctime is the kernel's; the inode is the same one where base and store
  /// share a file system). Refuses with E_UNDO_CONFLICT, touching nothing, when a path is no longer what the
  /// transaction left. The kept files of `txn` stay. An undo can be undone. `transaction.items` is ignored: its number
  /// of items is itemCount(txn).
  Outcome undo(int baseFd, Txn txn, Transaction as);
  /// How many items (and root numbers) a transaction has; 0 if there is no such.
  std::size_t itemCount(Txn txn) const;

  /// The caller has made the outcome its own, durably: recover is silent about it from now on. A transaction that did
  /// not happen is forgotten; one that did stays for undo and for its kept files.
  Result<> acknowledge(Txn txn);
  /// Deletes a transaction with all it keeps: it can no longer be undone and no BaseRef may name its roots.
  Result<> release(Txn txn);
  /// The committed transactions that are still here, oldest first.
  std::vector<Txn> transactions() const;

  /// The old file or folder kept under a number, as an O_PATH descriptor (a symlink is not followed). ENOENT if none.
  Result<UniqueFd> openKept(std::uint32_t root) const;

  /// Makes the swaps of finished transactions durable by themselves, so that recover need not look at them again. For
  /// the store's background thread; commit does not wait for it because DECIDED is durable already.
  Result<> sync();

  /// A name in the base that belongs to a commit in progress (".bough-stage-…"): not for views and watches.
  static bool isStagingName(std::string_view name);

 private:
  struct State;
  explicit BaseCommit(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A number that changes when anything below a folder changes: names, kinds, inodes, sizes, modes, owners, mtimes and
/// xattrs of everything below it, in the order of the names' bytes. Not ctimes: they move with a hard link that comes
/// or goes. `folderFd`: opened for reading.
Result<std::uint64_t> treeDigest(int folderFd);

}  // namespace bough
