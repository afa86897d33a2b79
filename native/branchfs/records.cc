// The bytes of the records. See records.h.
#include "native/branchfs/records.h"

#include <utility>

namespace bough {
namespace {

enum class Type : std::uint8_t {
  Changed = 1,
  BranchesMade,
  PointMoved,
  Rebased,
  CommittedIntoBranch,
  CommittedIntoBase,
  CommitUndone,
  CommitForgotten,
  BranchesGone,
  Renamed,
  Mounted,
  Reserved,
  Synced,
  MountedFolder,
};
enum class MutationType : std::uint8_t { PutNode = 1, DropNode, PutEntry, DropEntry };

void type(Encoder& out, Type value) { out.byte(static_cast<std::uint8_t>(value)); }
void type(Encoder& out, MutationType value) { out.byte(static_cast<std::uint8_t>(value)); }

struct MutationEncoder {
  Encoder& out;
  void operator()(const PutNode& put) const {
    type(out, MutationType::PutNode);
    out.number(put.id);
    encodeNode(out, *put.node);
    out.flag(put.withEntries);
    if (!put.withEntries) return;
    out.number(put.node->entries.size());
    put.node->entries.forEach([&](const std::string& name, NodeId child) {
      out.bytes(name);
      out.number(child);
    });
  }
  void operator()(const DropNode& drop) const {
    type(out, MutationType::DropNode);
    out.number(drop.id);
  }
  void operator()(const PutEntry& put) const {
    type(out, MutationType::PutEntry);
    out.number(put.dir);
    out.bytes(put.name);
    out.number(put.child);
  }
  void operator()(const DropEntry& drop) const {
    type(out, MutationType::DropEntry);
    out.number(drop.dir);
    out.bytes(drop.name);
  }
};

void encodeMutations(Encoder& out, const std::vector<Mutation>& mutations) {
  out.number(mutations.size());
  for (const Mutation& mutation : mutations) std::visit(MutationEncoder{out}, mutation);
}
void encodeChange(Encoder& out, const Change& change) {
  encodeMutations(out, change.settles);
  encodeMutations(out, change.edits);
}
void encodeIds(Encoder& out, const std::vector<BranchId>& ids) {
  out.number(ids.size());
  for (const BranchId& id : ids) out.bytes(id);
}
void encodePins(Encoder& out, const std::vector<Pin>& pins) {
  out.number(pins.size());
  for (const Pin& pin : pins) {
    out.bytes(pin.owner);
    encodeMutations(out, pin.tree);
    encodeMutations(out, pin.point);
  }
}

Mutation decodeMutation(Decoder& in, const LeaseOf& leaseOf) {
  switch (static_cast<MutationType>(in.byte())) {
    case MutationType::PutNode: {
      PutNode put{in.number(), nullptr, false};
      auto node = std::make_shared<Node>(decodeNode(in, leaseOf));
      put.withEntries = in.flag();
      if (put.withEntries) {
        for (std::size_t left = in.count(); left > 0 && in.ok(); left--) {
          std::string name = in.bytes();
          node->entries.set(std::move(name), in.number());
        }
      }
      put.node = std::move(node);
      return put;
    }
    case MutationType::DropNode:
      return DropNode{in.number()};
    case MutationType::PutEntry: {
      PutEntry put{in.number(), in.bytes(), 0};
      put.child = in.number();
      return put;
    }
    case MutationType::DropEntry: {
      DropEntry drop{in.number(), {}};
      drop.name = in.bytes();
      return drop;
    }
  }
  in.fail();
  return DropNode{kNoNode};
}
std::vector<Mutation> decodeMutations(Decoder& in, const LeaseOf& leaseOf) {
  std::vector<Mutation> result;
  for (std::size_t left = in.count(); left > 0 && in.ok(); left--) result.push_back(decodeMutation(in, leaseOf));
  return result;
}
Change decodeChange(Decoder& in, const LeaseOf& leaseOf) {
  Change change;
  change.settles = decodeMutations(in, leaseOf);
  change.edits = decodeMutations(in, leaseOf);
  return change;
}
std::vector<BranchId> decodeIds(Decoder& in) {
  std::vector<BranchId> ids;
  for (std::size_t left = in.count(); left > 0 && in.ok(); left--) ids.push_back(in.bytes());
  return ids;
}
std::vector<Pin> decodePins(Decoder& in, const LeaseOf& leaseOf) {
  std::vector<Pin> pins;
  for (std::size_t left = in.count(); left > 0 && in.ok(); left--) {
    Pin pin{in.bytes(), {}, {}};
    pin.tree = decodeMutations(in, leaseOf);
    pin.point = decodeMutations(in, leaseOf);
    pins.push_back(std::move(pin));
  }
  return pins;
}

struct RecordEncoder {
  Encoder& out;

  void operator()(const Changed& r) const { encodeChanged(out, r.branch, r.change); }
  void operator()(const BranchesMade& r) const {
    type(out, Type::BranchesMade);
    out.bytes(r.parent);
    out.number(r.parentEpoch);
    out.number(r.group);
    out.flag(r.exclusive);
    out.signedNumber(r.createdMs);
    out.number(r.made.size());
    for (const auto& one : r.made) {
      out.bytes(one.id);
      out.bytes(one.name);
      out.number(one.epoch);
    }
  }
  void operator()(const PointMoved& r) const {
    type(out, Type::PointMoved);
    out.bytes(r.branch);
    encodeMutations(out, r.point);
    encodeMutations(out, r.tree);
    out.number(r.epoch);
  }
  void operator()(const Rebased& r) const {
    type(out, Type::Rebased);
    out.bytes(r.branch);
    out.bytes(r.parent);
    out.number(r.epoch);
    out.number(r.parentEpoch);
    encodeChange(out, r.change);
  }
  void operator()(const CommittedIntoBranch& r) const {
    type(out, Type::CommittedIntoBranch);
    encodeFacts(out, r.facts);
    out.number(r.parentEpoch);
    out.flag(r.adopt);
    if (!r.adopt) encodeChange(out, r.merged);
  }
  void operator()(const CommittedIntoBase& r) const {
    type(out, Type::CommittedIntoBase);
    encodeFacts(out, r.facts);
    out.number(r.txn);
    out.number(r.firstRoot);
    out.number(r.items.size());
    for (const std::string& path : r.items) out.bytes(path);
    encodePins(out, r.pins);
  }
  void operator()(const CommitUndone& r) const {
    type(out, Type::CommitUndone);
    out.bytes(r.commit);
    encodeMutations(out, r.parentEdits);
    out.number(r.parentEpoch);
    out.number(r.txn);
    out.number(r.firstRoot);
    encodePins(out, r.pins);
  }
  void operator()(const CommitForgotten& r) const {
    type(out, Type::CommitForgotten);
    out.bytes(r.commit);
  }
  void operator()(const BranchesGone& r) const {
    type(out, Type::BranchesGone);
    encodeIds(out, r.branches);
  }
  void operator()(const Renamed& r) const {
    type(out, Type::Renamed);
    out.bytes(r.branch);
    out.bytes(r.name);
  }
  void operator()(const Mounted& r) const {
    type(out, r.folder.empty() ? Type::Mounted : Type::MountedFolder);
    out.bytes(r.branch);
    out.bytes(r.at);
    if (r.folder.empty()) return;
    out.bytes(r.folder);
    out.number(r.node);
  }
  void operator()(const Counters& r) const {
    type(out, Type::Reserved);
    encodeCounters(out, r);
  }
  void operator()(const Synced& r) const {
    type(out, Type::Synced);
    out.number(r.offset);
  }
};

BranchesMade decodeBranchesMade(Decoder& in) {
  BranchesMade r;
  r.parent = in.bytes();
  r.parentEpoch = in.number();
  r.group = in.number();
  r.exclusive = in.flag();
  r.createdMs = in.signedNumber();
  for (std::size_t left = in.count(); left > 0 && in.ok(); left--) {
    BranchesMade::One one;
    one.id = in.bytes();
    one.name = in.bytes();
    one.epoch = in.number();
    r.made.push_back(std::move(one));
  }
  return r;
}

}  // namespace

void encodeChanged(Encoder& out, std::string_view branch, const Change& change) {
  type(out, Type::Changed);
  out.bytes(branch);
  encodeChange(out, change);
}

void encodeFacts(Encoder& out, const CommitFacts& facts) {
  out.bytes(facts.id);
  out.bytes(facts.branch);
  out.bytes(facts.into);
  out.signedNumber(facts.atMs);
  out.number(facts.paths);
  out.flag(facts.partial);
  encodeIds(out, facts.superseded);
  encodeMutations(out, facts.point);
  encodeMutations(out, facts.pointBack);
  out.number(facts.epoch);
}
CommitFacts decodeFacts(Decoder& in, const LeaseOf& leaseOf) {
  CommitFacts facts;
  facts.id = in.bytes();
  facts.branch = in.bytes();
  facts.into = in.bytes();
  facts.atMs = in.signedNumber();
  facts.paths = in.number();
  facts.partial = in.flag();
  facts.superseded = decodeIds(in);
  facts.point = decodeMutations(in, leaseOf);
  facts.pointBack = decodeMutations(in, leaseOf);
  facts.epoch = in.number();
  return facts;
}

void encodeCounters(Encoder& out, const Counters& counters) {
  out.number(counters.node);
  out.number(counters.object);
  out.number(counters.epoch);
  out.number(counters.group);
  out.number(counters.commit);
  out.number(counters.txn);
  out.number(counters.root);
}
Counters decodeCounters(Decoder& in) {
  Counters counters;
  counters.node = in.number();
  counters.object = in.number();
  counters.epoch = in.number();
  counters.group = in.number();
  counters.commit = in.number();
  counters.txn = in.number32();
  counters.root = in.number32();
  return counters;
}

void encode(Encoder& out, const Record& record) { std::visit(RecordEncoder{out}, record); }

Record decodeRecord(Decoder& in, const LeaseOf& leaseOf) {
  switch (static_cast<Type>(in.byte())) {
    case Type::Changed: {
      Changed r{in.bytes(), {}};
      r.change = decodeChange(in, leaseOf);
      return r;
    }
    case Type::BranchesMade:
      return decodeBranchesMade(in);
    case Type::PointMoved: {
      PointMoved r;
      r.branch = in.bytes();
      r.point = decodeMutations(in, leaseOf);
      r.tree = decodeMutations(in, leaseOf);
      r.epoch = in.number();
      return r;
    }
    case Type::Rebased: {
      Rebased r;
      r.branch = in.bytes();
      r.parent = in.bytes();
      r.epoch = in.number();
      r.parentEpoch = in.number();
      r.change = decodeChange(in, leaseOf);
      return r;
    }
    case Type::CommittedIntoBranch: {
      CommittedIntoBranch r;
      r.facts = decodeFacts(in, leaseOf);
      r.parentEpoch = in.number();
      r.adopt = in.flag();
      if (!r.adopt) r.merged = decodeChange(in, leaseOf);
      return r;
    }
    case Type::CommittedIntoBase: {
      CommittedIntoBase r;
      r.facts = decodeFacts(in, leaseOf);
      r.txn = in.number32();
      r.firstRoot = in.number32();
      r.items = decodeIds(in);
      r.pins = decodePins(in, leaseOf);
      return r;
    }
    case Type::CommitUndone: {
      CommitUndone r;
      r.commit = in.bytes();
      r.parentEdits = decodeMutations(in, leaseOf);
      r.parentEpoch = in.number();
      r.txn = in.number32();
      r.firstRoot = in.number32();
      r.pins = decodePins(in, leaseOf);
      return r;
    }
    case Type::CommitForgotten:
      return CommitForgotten{in.bytes()};
    case Type::BranchesGone:
      return BranchesGone{decodeIds(in)};
    case Type::Renamed: {
      Renamed r{in.bytes(), {}};
      r.name = in.bytes();
      return r;
    }
    case Type::Mounted: {
      Mounted r;
      r.branch = in.bytes();
      r.at = in.bytes();
      return r;
    }
    case Type::MountedFolder: {
      Mounted r;
      r.branch = in.bytes();
      r.at = in.bytes();
      r.folder = in.bytes();
      r.node = in.number();
      return r;
    }
    case Type::Reserved:
      return decodeCounters(in);
    case Type::Synced:
      return Synced{in.number()};
  }
  in.fail();
  return Synced{};
}

}  // namespace bough
