// Reading a snapshot. See snapshot.h.
#include <errno.h>

#include <memory>
#include <utility>

#include "native/branchfs/log_file.h"
#include "native/branchfs/snapshot.h"
#include "native/branchfs/snapshot_items.h"

namespace bough {
namespace {

class Reader {
 public:
  Reader(Ledger& ledger, const LeaseOf& leaseOf) : ledger_(ledger), leaseOf_(leaseOf) {}

  bool frame(std::string_view payload) {
    Decoder in(payload);
    while (in.ok() && !in.atEnd()) {
      if (ended_) return false;
      item(in);
      items_++;
    }
    return in.ok() && !bad_;
  }
  bool whole() const { return ended_; }
  std::uint64_t generation() const { return generation_; }
  std::uint64_t version() const { return version_; }

 private:
  void item(Decoder& in) {
    switch (static_cast<SnapshotItem>(in.byte())) {
      case SnapshotItem::Header:
        version_ = in.number();
        generation_ = in.number();
        if (version_ == 0 || version_ > kSnapshotVersion) in.fail();
        return;
      case SnapshotItem::EntriesTrie:
        entriesTries_.push_back(
            trie<Entries>(in, entriesTries_, [&] { return in.bytes(); }, [&] { return in.number(); }));
        return;
      case SnapshotItem::Node: {
        auto node = std::make_shared<Node>(decodeNode(in, leaseOf_));
        node->entries = map<Entries>(in, entriesTries_);
        nodes_.push_back(std::move(node));
        return;
      }
      case SnapshotItem::NodesTrie:
        nodesTries_.push_back(trie<Nodes>(in, nodesTries_, [&] { return in.number(); }, [&] { return node(in); }));
        return;
      case SnapshotItem::Branch:
        return branch(in);
      case SnapshotItem::Commit: {
        CommitEntry entry;
        entry.facts = decodeFacts(in, leaseOf_);
        entry.before = map<Nodes>(in, nodesTries_);
        entry.after = map<Nodes>(in, nodesTries_);
        entry.txn = in.number32();
        entry.firstRoot = in.number32();
        for (std::size_t left = in.count(); left > 0 && in.ok(); left--) entry.items.push_back(in.bytes());
        entry.forgotten = in.flag();
        ledger_.commits.push_back(std::move(entry));
        return;
      }
      case SnapshotItem::Counters:
        ledger_.counters = decodeCounters(in);
        return;
      case SnapshotItem::End:
        ended_ = in.number() == items_;
        bad_ = bad_ || !ended_;
        return;
    }
    in.fail();
  }

  template <typename Map, typename Key, typename Value>
  typename Map::Handle trie(Decoder& in, const std::vector<typename Map::Handle>& known, Key&& key, Value&& value) {
    const std::uint32_t leafMap = in.number32();
    const std::uint32_t nodeMap = in.number32();
    const bool collision = in.flag();
    std::vector<typename Map::Pair> pairs;
    for (std::size_t left = in.count(); left > 0 && in.ok(); left--) {
      auto k = key();
      pairs.emplace_back(std::move(k), value());
    }
    std::vector<typename Map::Handle> children;
    for (std::size_t left = in.count(); left > 0 && in.ok(); left--) children.push_back(at(in, known));
    auto handle = Map::makeNode(leafMap, nodeMap, collision, std::move(pairs), std::move(children));
    if (!handle) in.fail();
    return handle;
  }
  template <typename T>
  static T at(Decoder& in, const std::vector<T>& known) {
    const std::uint64_t number = in.number();
    if (number == 0 || number > known.size()) {
      in.fail();
      return T();
    }
    return known[number - 1];
  }
  NodePtr node(Decoder& in) { return at(in, nodes_); }

  template <typename Map>
  Map map(Decoder& in, const std::vector<typename Map::Handle>& known) {
    const std::uint64_t number = in.number();
    if (number == 0) return Map();
    if (number > known.size()) {
      in.fail();
      return Map();
    }
    return Map::fromRoot(known[number - 1]);
  }

  void branch(Decoder& in) {
    auto b = std::make_shared<Branch>();
    b->id = in.bytes();
    b->parent = in.bytes();
    b->group = in.number();
    b->exclusive = in.flag();
    b->name = in.bytes();
    b->createdMs = in.signedNumber();
    const std::uint8_t state = in.byte();
    if (state > static_cast<std::uint8_t>(BranchState::Superseded)) in.fail();
    b->state = static_cast<BranchState>(state);
    b->edits = in.number();
    b->editsSeen = b->edits;
    b->order = in.number();
    b->tree.nodes = map<Nodes>(in, nodesTries_);
    b->tree.epoch = in.number();
    b->point = map<Nodes>(in, nodesTries_);
    b->origin = map<Nodes>(in, nodesTries_);
    b->mountAt = in.bytes();
    b->committedInto = in.bytes();
    b->commitId = in.bytes();
    if (version_ >= 2) {
      b->mountFolder = in.bytes();
      b->mountNode = in.number();
    }
    b->log = ledger_.log;
    if (in.ok()) ledger_.branches.emplace(b->id, std::move(b));
  }

  Ledger& ledger_;
  const LeaseOf& leaseOf_;
  std::vector<Entries::Handle> entriesTries_;
  std::vector<Nodes::Handle> nodesTries_;
  std::vector<NodePtr> nodes_;
  std::uint64_t items_ = 0, generation_ = 0, version_ = kSnapshotVersion;
  bool ended_ = false, bad_ = false;
};

}  // namespace

Result<std::uint64_t> readSnapshot(int folderFd, Ledger& ledger, const LeaseOf& leaseOf) {
  auto mapped = MappedFile::open(folderFd, "snapshot");
  if (!mapped) {
    if (mapped.error().errnum == ENOENT) return std::uint64_t{0};
    return mapped.error();
  }
  Reader reader(ledger, leaseOf);
  std::string_view data = mapped->data();
  std::size_t at = 0;
  while (at < data.size()) {
    const std::string_view payload = frameAt(data.substr(at));
    if (!payload.data() || !reader.frame(payload)) break;
    at += kFrameHeader + payload.size();
  }
  if (reader.version() == 0 || reader.version() > kSnapshotVersion) {
    return Error{EIO, "E_STORE_VERSION",
                 "The store's snapshot has version " + std::to_string(reader.version()) + ", this boughfs reads 1 to " +
                     std::to_string(kSnapshotVersion) + ". Use the boughfs that wrote it, or a new store."};
  }
  if (at != data.size() || !reader.whole()) {
    return Error{EIO, "E_STORE_DAMAGED",
                 "The store's snapshot is damaged at byte " + std::to_string(at) +
                     ". Restore the store from a backup, or move the folder away to start a new store."};
  }
  return reader.generation();
}

}  // namespace bough
