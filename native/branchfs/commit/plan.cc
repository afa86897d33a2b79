// See plan.h.
#include "native/branchfs/commit/plan.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <unordered_map>

#include "native/branchfs/commit/copy.h"
#include "native/common/fail_point.h"

namespace bough::base_commit {

namespace {

using Type = PlannedItem::Type;

// Up to here each file is synced by itself; for more the whole file system is, once.
constexpr std::size_t kSyncEach = 64;

std::uint64_t randomTag() {
  std::uint64_t tag = 0;
  for (std::size_t got = 0; got < sizeof tag;) {
    const ssize_t n = ::getrandom(reinterpret_cast<char*>(&tag) + got, sizeof tag - got, 0);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return tag;
}

Result<> syncFileSystem(int folderFd) {
  const UniqueFd readable(::openat(folderFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable || ::syncfs(readable.get()) != 0) return sys(errno);
  return Done{};
}

}  // namespace

Prepared plan(const Transaction& transaction, Txn undoOf, const Checked& checked, const Found& base,
              const Found& journal) {
  Prepared prepared;
  prepared.txn = transaction.txn;
  prepared.undoOf = undoOf;
  prepared.firstRoot = transaction.firstRoot;
  prepared.tag = randomTag();
  prepared.base = base.identity;
  prepared.note = transaction.note;
  std::unordered_map<std::string, std::size_t> folderIndex;
  std::unordered_map<std::string, bool> timesSet;
  for (std::size_t i = 0; i < transaction.items.size(); ++i) {
    const Found& target = checked.items[i].target;
    const Found& parent = checked.items[i].parent;
    PlannedItem item;
    item.replaces = target.exists;
    item.oldKind = target.kind;
    item.old = target.identity;
    if (const auto* meta = std::get_if<Meta>(&transaction.items[i])) {
      item.type = Type::Meta;
      item.path = meta->path;
      item.becomes = meta->becomes;
      item.oldMeta = {target.mode, target.uid, target.gid, target.identity.mtime, checked.items[i].xattrs};
      if (meta->becomes.mtime) timesSet[meta->path] = true;
      prepared.items.push_back(std::move(item));
      continue;
    }
    item.type = std::holds_alternative<Put>(transaction.items[i]) ? Type::Put : Type::Remove;
    item.path =
        item.type == Type::Put ? std::get<Put>(transaction.items[i]).path : std::get<Remove>(transaction.items[i]).path;
    item.beside = parent.identity.dev != journal.identity.dev || parent.mount != journal.mount || parent.mount == 0;
    const std::string folderPath = splitPath(item.path).first;
    const auto [at, isNew] = folderIndex.try_emplace(folderPath, prepared.folders.size());
    if (isNew) prepared.folders.push_back({folderPath, parent.identity, true, item.beside});
    if (item.type == Type::Remove || !item.replaces) prepared.folders[at->second].onlyReplaced = false;
    prepared.items.push_back(std::move(item));
  }
  for (PlannedFolder& folder : prepared.folders) {
    if (timesSet.contains(folder.path)) folder.onlyReplaced = false;
  }
  return prepared;
}

std::uint64_t journalBytes(const Prepared& prepared) {
  constexpr std::uint64_t kFixed = 16384;
  constexpr std::uint64_t kPerItem = 256;  // a StagedItem and an ItemOutcome without the path
  std::uint64_t bytes = kFixed + 3 * encode(prepared).size();
  bytes += kPerItem * (prepared.items.size() + prepared.folders.size());
  return bytes;
}

Result<std::optional<std::uint64_t>> Staging::keepCopy(std::size_t index, const PlannedItem& item, CopiedLinks& links) {
  errorPath = item.path;
  const auto [folderPath, name] = splitPath(item.path);
  BOUGH_ASSIGN(const auto folder, folders_.open(folderPath));
  std::optional<std::uint64_t> digest;
  if (item.oldKind == Kind::Directory) {
    const UniqueFd old(::openat(folder->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!old) return sys(errno);
    BOUGH_ASSIGN(digest, treeDigest(old.get()));
  }
  std::vector<NotApplied> ignored;  // of the copy, not of the base
  BOUGH_TRY(copyTree(folder->get(), name, {keptFd_, std::to_string(index)}, links, item.path,
                     item.oldKind != Kind::Directory, ignored));
  failPoint("commit.copied");
  return digest;
}

Result<bool> Staging::stage(std::size_t index, const NewNode& node, const Prepared& prepared, Stager& stager) {
  const PlannedItem& item = prepared.items[index];
  errorPath = item.path;
  int folderFd = keptFd_;
  std::string name = std::to_string(index);
  std::shared_ptr<UniqueFd> folder;
  if (item.beside) {
    BOUGH_ASSIGN(folder, folders_.open(splitPath(item.path).first));
    folderFd = folder->get();
    name = stagingName(prepared, index);
    if (sharesFiles(node)) held_.push_back(folder);
  }
  auto made = stager.make(folderFd, name, node, item.path);
  errorPath = stager.errorPath;
  if (!made) return made.error();
  failPoint("commit.staged");
  return *made;
}

Result<> Staging::makeDurable(const Prepared& prepared, bool syncEach) {
  if (syncEach) {
    if (::fsync(keptFd_) != 0) return sys(errno);
    for (const PlannedFolder& folder : prepared.folders) {
      if (!folder.beside) continue;
      BOUGH_ASSIGN(const auto fd, folders_.open(folder.path));
      BOUGH_TRY(syncFolder(fd->get()));
    }
    return Done{};
  }
  errorPath.clear();
  BOUGH_TRY(syncFileSystem(keptFd_));
  std::set<std::uint64_t> synced;
  for (const PlannedFolder& folder : prepared.folders) {
    if (!folder.beside || !synced.insert(folder.identity.dev).second) continue;
    BOUGH_ASSIGN(const auto fd, folders_.open(folder.path));
    BOUGH_TRY(syncFileSystem(fd->get()));
  }
  return Done{};
}

Result<Decided> Staging::run(const Transaction& transaction, const Prepared& prepared) {
  std::size_t nodes = 0;
  bool copiesFolder = false;
  for (std::size_t i = 0; i < transaction.items.size(); ++i) {
    if (const auto* put = std::get_if<Put>(&transaction.items[i])) {
      nodes += countNodes(put->node);
      linked = linked || usesLinks(put->node);
    }
    const PlannedItem& item = prepared.items[i];
    if (item.beside && item.replaces && item.oldKind == Kind::Directory) copiesFolder = true;
    if (item.beside && item.replaces) ++nodes;
  }
  const bool syncEach = nodes <= kSyncEach && !copiesFolder;

  CopiedLinks keptLinks;
  Stager stager(resolve_, syncEach);
  Decided decided;
  decided.items.resize(prepared.items.size());
  for (std::size_t i = 0; i < prepared.items.size(); ++i) {
    const PlannedItem& item = prepared.items[i];
    if (item.type == Type::Meta) continue;
    if (item.beside && item.replaces) {
      BOUGH_ASSIGN(decided.items[i].keptDigest, keepCopy(i, item, keptLinks));
    }
    const auto* put = std::get_if<Put>(&transaction.items[i]);
    if (!put) continue;
    BOUGH_ASSIGN(decided.items[i].present, stage(i, put->node, prepared, stager));
  }
  // Only now: a later hard link moves the ctime of the file it is made to.
  for (std::size_t i = 0; i < prepared.items.size(); ++i) {
    StagedItem& staged = decided.items[i];
    if (!staged.present) continue;
    const PlannedItem& item = prepared.items[i];
    std::shared_ptr<UniqueFd> folder;
    if (item.beside) {
      BOUGH_ASSIGN(folder, folders_.open(splitPath(item.path).first));
    }
    const int folderFd = folder ? folder->get() : keptFd_;
    const std::string name = item.beside ? stagingName(prepared, i) : std::to_string(i);
    BOUGH_ASSIGN(const Found found, look(folderFd, name));
    if (!found.exists) return sys(ENOENT);
    staged.kind = found.kind;
    staged.identity = found.identity;
  }
  BOUGH_TRY(makeDurable(prepared, syncEach));
  failPoint("commit.synced");
  decided.notApplied = std::move(stager.notApplied);
  return decided;
}

}  // namespace bough::base_commit
