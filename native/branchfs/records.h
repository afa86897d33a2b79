// What the store's log says, as types, and their bytes (docs/store-format.md). Store makes them; Ledger applies them,
// at once and again at recovery; snapshot uses the encoding of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "native/branchfs/branch.h"
#include "native/branchfs/change.h"
#include "native/branchfs/model.h"
#include "native/common/codec.h"
#include "native/common/result.h"

namespace bough {

struct Changed {
  BranchId branch;
  Change change;
};

struct BranchesMade {
  struct One {
    BranchId id;
    std::string name;
    Epoch epoch = 0;
  };
  BranchId parent;
  Epoch parentEpoch = 0;  // not used for the base
  std::uint64_t group = 0;
  bool exclusive = false;
  std::int64_t createdMs = 0;
  std::vector<One> made;
};

/// The branch meets its parent anew at some paths: after a partial commit, a resolve.
struct PointMoved {
  BranchId branch;
  std::vector<Mutation> point;
  std::vector<Mutation> tree;  // settles of the same paths; no edit of a person
  Epoch epoch = 0;             // the tree's new one; 0: stays
};

struct Rebased {
  BranchId branch;
  BranchId parent;  // what its parent lives on in
  Epoch epoch = 0, parentEpoch = 0;
  Change change;  // on top of the parent's tree
};

/// What a commit was, however it was done.
struct CommitFacts {
  std::string id;  // "c" and a number
  BranchId branch, into;
  std::int64_t atMs = 0;
  std::uint64_t paths = 0;
  bool partial = false;
  std::vector<BranchId> superseded;
  std::vector<Mutation> point;      // partial: what the child's point gets
  std::vector<Mutation> pointBack;  // partial: what takes that back
  Epoch epoch = 0;                  // the child's new one
};

struct CommittedIntoBranch {
  CommitFacts facts;
  Epoch parentEpoch = 0;
  bool adopt = false;  // the parent takes the child's tree whole
  Change merged;       // otherwise
};

/// What a branch gets so that it does not see a change of the base. `owner` may be a commit: then `tree` is for what
/// its parent was before and `point` for what it was after.
struct Pin {
  std::string owner;
  std::vector<Mutation> tree, point;
};

struct CommittedIntoBase {
  CommitFacts facts;
  std::uint32_t txn = 0;
  std::uint32_t firstRoot = 0;
  std::vector<std::string> items;  // the paths of the transaction; item i's old thing is kept as firstRoot + i
  std::vector<Pin> pins;
};

struct CommitUndone {
  std::string commit;
  std::vector<Mutation> parentEdits;  // of a commit into a branch
  Epoch parentEpoch = 0;
  std::uint32_t txn = 0;  // of a commit into the base: the transaction that undid it; what it kept serves `pins`
  std::uint32_t firstRoot = 0;
  std::vector<Pin> pins;
};

/// Its undo is given up. What a commit into the base kept stays until no branch needs it; said a second time: that is
/// so.
struct CommitForgotten {
  std::string commit;
};
struct BranchesGone {
  std::vector<BranchId> branches;
};
struct Renamed {
  BranchId branch;
  std::string name;
};
struct Mounted {
  BranchId branch;
  std::string at;         // empty: unmounted
  std::string folder;     // what of the branch is shown; empty: all
  NodeId node = kNoNode;  // the folder's, if the tree has it
};

/// Numbers below these may have been given out.
struct Counters {
  NodeId node = kFirstNewNode;
  ObjectId object = 1;
  Epoch epoch = 1;
  std::uint64_t group = 1;
  std::uint64_t commit = 1;
  std::uint32_t txn = 1;
  std::uint32_t root = 1;
};

struct Synced {
  std::uint64_t offset = 0;
};

using Record = std::variant<Changed, BranchesMade, PointMoved, Rebased, CommittedIntoBranch, CommittedIntoBase,
                            CommitUndone, CommitForgotten, BranchesGone, Renamed, Mounted, Counters, Synced>;

void encode(Encoder& out, const Record& record);
/// The hot path: a Changed without making one.
void encodeChanged(Encoder& out, std::string_view branch, const Change& change);

/// Gives the lease of an object that a decoded node names: see Objects::lease.
using LeaseOf = std::function<std::shared_ptr<const void>(ObjectId)>;
/// The next record of `in`; in.ok() says whether it made sense.
Record decodeRecord(Decoder& in, const LeaseOf& leaseOf);

/// A node without its entries.
void encodeNode(Encoder& out, const Node& node);
Node decodeNode(Decoder& in, const LeaseOf& leaseOf);
void encodeFacts(Encoder& out, const CommitFacts& facts);
CommitFacts decodeFacts(Decoder& in, const LeaseOf& leaseOf);
void encodeCounters(Encoder& out, const Counters& counters);
Counters decodeCounters(Decoder& in);

}  // namespace bough
