// The words of BranchFS as types: nodes, trees, branches. Everything in native/branchfs uses them; they do no I/O.
//
// A tree is an immutable (persistent) map from node id to node, holding only what differs from the base, plus the chain
// of folders that leads there. Copying a tree is copying a pointer: that is what makes a branch point O(1) and frozen.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "native/common/persistent_map.h"

namespace bough {

/// Inode number as programs see it. The base's root is 1; a base file has its own st_ino (files of other devices below
/// the base: a stable hash with bit 61 set); a node born in a branch counts up from 2^62.
using NodeId = std::uint64_t;
inline constexpr NodeId kRootNode = 1;
inline constexpr NodeId kNoNode = 0;  // as a folder's entry: a whiteout
inline constexpr NodeId kFirstNewNode = 1ULL << 62;

using BranchId = std::string;    // "b" + 10 base32 characters; the base is "base"
using Epoch = std::uint64_t;     // counts branch points in a store; never reused
using ObjectId = std::uint64_t;  // a file in the store that holds one file's data; never reused

enum class Kind : std::uint8_t { File, Directory, Symlink, Fifo, Socket, CharDevice, BlockDevice };

/// The kind that the type bits of an st_mode say (inode(7)).
inline Kind kindOf(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return Kind::Directory;
    case S_IFLNK:
      return Kind::Symlink;
    case S_IFIFO:
      return Kind::Fifo;
    case S_IFSOCK:
      return Kind::Socket;
    case S_IFCHR:
      return Kind::CharDevice;
    case S_IFBLK:
      return Kind::BlockDevice;
    default:
      return Kind::File;
  }
}

struct Time {
  std::int64_t sec = 0;
  std::uint32_t nsec = 0;
  auto operator<=>(const Time&) const = default;
};

/// A place outside the trees: `root` 0 is the base folder, any other number is a folder or file that a commit into the
/// base kept (see commit/). `path` is relative, without leading slash, "" for the root itself.
struct BaseRef {
  std::uint32_t root = 0;
  std::string path;
  auto operator<=>(const BaseRef&) const = default;
};

/// What a base file was when a branch first met it for change (promise 6). Equal identity: not touched from outside.
struct Identity {
  bool known = false;  // false: this node was born in a branch
  std::uint64_t dev = 0;
  std::uint64_t ino = 0;
  std::uint64_t size = 0;  // bytes; 0 for folders
  Time mtime, ctime, btime;
  auto operator<=>(const Identity&) const = default;
};

using Xattrs = std::map<std::string, std::string>;
using Entries = PersistentMap<std::string, NodeId>;  // kNoNode: whiteout

/// A file's data: still the base's file, or an object of the store. An object belongs to the tree whose epoch equals
/// `epoch`; to every other tree it is frozen and a write copies it first (copy-up).
struct Content {
  enum class Where : std::uint8_t { Nothing, Base, Object } where = Where::Nothing;
  BaseRef base;         // where == Base
  ObjectId object = 0;  // where == Object
  Epoch epoch = 0;      // where == Object; 0: never written again
  /// where == Object: from Objects::lease(object). When the last lease of an object goes, its file is garbage.
  std::shared_ptr<const void> lease;
  bool operator==(const Content& other) const {
    return where == other.where && base == other.base && object == other.object && epoch == other.epoch;
  }
};

/// One inode. Immutable once it is in a tree. For a file with data (base or object) size, blocks and, unless
/// `timesHeld`, atime and mtime are those of the file that holds the data; ctime is the later of both. Else the fields
/// here hold.
struct Node {
  Kind kind = Kind::File;
  std::uint32_t mode = 0;  // permission bits, 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t rdev = 0;
  std::uint32_t nlink = 1;  // as this branch sees it
  std::uint64_t size = 0;   // bytes
  Time atime, mtime, ctime, btime;
  bool timesHeld = false;                // File: atime and mtime were set here, the data's own do not count
  std::string target;                    // Symlink
  std::shared_ptr<const Xattrs> xattrs;  // null: none
  Content content;                       // File
  bool hasUnder = false;                 // Directory: entries not in `entries` are looked up in `under`
  BaseRef under;
  Entries entries;  // Directory
  Identity identity;
};
using NodePtr = std::shared_ptr<const Node>;
using Nodes = PersistentMap<NodeId, NodePtr>;

/// The files of a branch at one instant. Every node in it is reachable from the root through `entries`.
struct Tree {
  Nodes nodes;
  Epoch epoch = 0;  // objects with this epoch may be written in place
};

}  // namespace bough
