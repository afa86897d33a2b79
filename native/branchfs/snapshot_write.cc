// Writing a snapshot. See snapshot.h.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <unordered_map>
#include <utility>

#include "native/branchfs/log_file.h"
#include "native/branchfs/snapshot.h"
#include "native/branchfs/snapshot_items.h"
#include "native/common/fail_point.h"

namespace bough {
namespace {

constexpr std::size_t kFrameTarget = std::size_t{1} << 20;

class Writer {
 public:
  explicit Writer(UniqueFd fd) : fd_(std::move(fd)) {}

  void header(std::uint64_t generation) {
    item(SnapshotItem::Header);
    out_.number(kSnapshotVersion);
    out_.number(generation);
  }

  std::uint64_t nodes(const Nodes& map) {
    Nodes::visitNodes(
        map.root(), [&](const void* id) { return tries_.contains(id); },
        [&](const Nodes::Handle& handle) {
          for (const auto& pair : handle.pairs()) node(pair.second);
          item(SnapshotItem::NodesTrie);
          trie(handle, [&](const NodePtr& value) { out_.number(values_.at(value.get())); });
          tries_.emplace(handle.id(), ++nodesTries_);
        });
    return map.empty() ? 0 : tries_.at(map.root().id());
  }

  void branch(const LedgerCopy::BranchCopy& b) {
    const std::uint64_t tree = nodes(b.tree.nodes);
    const std::uint64_t point = nodes(b.point);
    const std::uint64_t origin = nodes(b.origin);
    item(SnapshotItem::Branch);
    out_.bytes(b.id);
    out_.bytes(b.parent);
    out_.number(b.group);
    out_.flag(b.exclusive);
    out_.bytes(b.name);
    out_.signedNumber(b.createdMs);
    out_.byte(static_cast<std::uint8_t>(b.state));
    out_.number(b.edits);
    out_.number(b.order);
    out_.number(tree);
    out_.number(b.tree.epoch);
    out_.number(point);
    out_.number(origin);
    out_.bytes(b.mountAt);
    out_.bytes(b.committedInto);
    out_.bytes(b.commitId);
    out_.bytes(b.mountFolder);
    out_.number(b.mountNode);
  }

  void commit(const CommitEntry& entry) {
    const std::uint64_t before = nodes(entry.before);
    const std::uint64_t after = nodes(entry.after);
    item(SnapshotItem::Commit);
    encodeFacts(out_, entry.facts);
    out_.number(before);
    out_.number(after);
    out_.number(entry.txn);
    out_.number(entry.firstRoot);
    out_.number(entry.items.size());
    for (const std::string& path : entry.items) out_.bytes(path);
    out_.flag(entry.forgotten);
  }

  void counters(const Counters& value) {
    item(SnapshotItem::Counters);
    encodeCounters(out_, value);
  }

  Result<> finish() {
    const std::uint64_t count = items_;
    item(SnapshotItem::End);
    out_.number(count);
    flush();
    if (error_ != 0) return sysError(error_, "write the snapshot");
    if (::fsync(fd_.get()) != 0) return sysError(errno, "sync the snapshot");
    return Done{};
  }

 private:
  void item(SnapshotItem type) {
    if (out_.size() >= kFrameTarget) flush();
    out_.byte(static_cast<std::uint8_t>(type));
    items_++;
  }

  template <typename Handle, typename Value>
  void trie(const Handle& handle, Value&& value) {
    out_.number(handle.leafMap());
    out_.number(handle.nodeMap());
    out_.flag(handle.collision());
    out_.number(handle.pairs().size());
    for (const auto& pair : handle.pairs()) {
      key(pair.first);
      value(pair.second);
    }
    out_.number(handle.children().size());
    for (const auto& child : handle.children()) out_.number(tries_.at(child.id()));
  }
  void key(NodeId id) { out_.number(id); }
  void key(const std::string& name) { out_.bytes(name); }

  void node(const NodePtr& value) {
    if (values_.contains(value.get())) return;
    const Entries& entries = value->entries;
    Entries::visitNodes(
        entries.root(), [&](const void* id) { return tries_.contains(id); },
        [&](const Entries::Handle& handle) {
          item(SnapshotItem::EntriesTrie);
          trie(handle, [&](NodeId child) { out_.number(child); });
          tries_.emplace(handle.id(), ++entriesTries_);
        });
    item(SnapshotItem::Node);
    encodeNode(out_, *value);
    out_.number(entries.empty() ? 0 : tries_.at(entries.root().id()));
    values_.emplace(value.get(), ++nodesWritten_);
  }

  void flush() {
    const std::string frame = frameOf(out_.str());
    out_.clear();
    std::size_t done = 0;
    while (error_ == 0 && done < frame.size()) {
      const ssize_t n = ::write(fd_.get(), frame.data() + done, frame.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) error_ = errno;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
  }

  UniqueFd fd_;
  Encoder out_;
  int error_ = 0;
  std::uint64_t items_ = 0, nodesTries_ = 0, entriesTries_ = 0, nodesWritten_ = 0;
  std::unordered_map<const void*, std::uint64_t> tries_, values_;
};

}  // namespace

LedgerCopy copyOf(const Ledger& ledger) {
  LedgerCopy copy;
  copy.counters = ledger.counters;
  copy.commits = ledger.commits;
  for (const auto& [id, b] : ledger.branches) {
    b->foldAdopted();
    copy.branches.push_back({b->id, b->parent, b->committedInto, b->name, b->mountAt, b->mountFolder, b->commitId,
                             b->mountNode, b->group, b->edits, b->order, b->exclusive, b->createdMs, b->state, b->tree,
                             b->point, b->origin});
  }
  return copy;
}

Result<> writeSnapshot(int folderFd, const LedgerCopy& copy, std::uint64_t generation) {
  UniqueFd fd(::openat(folderFd, "snapshot.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return sysError(errno, "make the snapshot");
  Writer writer(std::move(fd));
  writer.header(generation);
  for (const auto& branch : copy.branches) writer.branch(branch);
  for (const auto& commit : copy.commits) writer.commit(commit);
  writer.counters(copy.counters);
  if (auto done = writer.finish(); !done) {
    ::unlinkat(folderFd, "snapshot.new", 0);
    return done;
  }
  failPoint("store.snapshot.written");
  if (::renameat(folderFd, "snapshot.new", folderFd, "snapshot") != 0)
    return sysError(errno, "put the snapshot in place");
  failPoint("store.snapshot.renamed");
  if (::fsync(folderFd) != 0) return sysError(errno, "sync the store's folder");
  return Done{};
}

}  // namespace bough
