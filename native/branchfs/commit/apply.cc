// See apply.h.
#include "native/branchfs/commit/apply.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "native/branchfs/commit/copy.h"
#include "native/branchfs/commit/xattrs.h"
#include "native/common/fail_point.h"

namespace bough::base_commit {

namespace {

using Type = PlannedItem::Type;
using Why = CommitConflict::Why;

Result<std::shared_ptr<UniqueFd>> openIfThere(Folders& folders, const std::string& path) {
  auto folder = folders.open(path);
  if (folder) return *folder;
  const int why = folder.error().errnum;
  if (why == ENOENT || why == ENOTDIR || why == ELOOP) return std::shared_ptr<UniqueFd>();
  return folder.error();
}

/// A file's data and times are those that the plan saw (ctime moves with every rename, and is not compared).
bool sameState(const Found& found, const PlannedItem& item) {
  if (!sameFile(found.identity, item.old)) return false;
  if (found.kind == Kind::Directory) return true;
  return found.identity.size == item.old.size && found.identity.mtime == item.old.mtime;
}

/// What was staged is at its target, and somebody wrote into it since: that is the newer text, and nobody else has it.
bool writtenSince(const Found& there, const StagedItem& staged) {
  if (there.kind == Kind::Directory || !sameFile(there.identity, staged.identity)) return false;
  return there.identity.size != staged.identity.size || there.identity.mtime != staged.identity.mtime;
}

/// No value for a folder that its owner may not read.
Result<std::optional<std::uint64_t>> digestOf(const Place& place) {
  const UniqueFd folder(::openat(place.folderFd, place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return errno == EACCES ? Result<std::optional<std::uint64_t>>(std::nullopt) : sys(errno);
  BOUGH_ASSIGN(const std::uint64_t digest, treeDigest(folder.get()));
  return std::optional<std::uint64_t>(digest);
}

Result<> unlinkName(const Place& place) {
  if (::unlinkat(place.folderFd, place.name.c_str(), 0) != 0 && errno != ENOENT) return sys(errno);
  return Done{};
}

}  // namespace

Result<std::optional<Application::Spot>> Application::targetOf(std::size_t index) {
  const auto [folderPath, name] = splitPath(prepared_.items[index].path);
  BOUGH_ASSIGN(auto folder, openIfThere(folders_, folderPath));
  if (!folder) return std::optional<Spot>();
  Place place{folder->get(), name};
  return std::optional<Spot>(Spot{std::move(folder), std::move(place)});
}

Result<std::optional<Application::Spot>> Application::stagedOf(std::size_t index) {
  if (!prepared_.items[index].beside) return std::optional<Spot>(Spot{nullptr, {keptFd_, std::to_string(index)}});
  BOUGH_ASSIGN(auto spot, targetOf(index));
  if (spot) spot->place.name = stagingName(prepared_, index);
  return spot;
}

Result<> Application::race(const PlannedItem& item, Why why, bool strict) {
  if (strict) {
    conflicts.push_back({item.path, why});
    return sys(EBUSY);
  }
  raced.push_back(item.path);
  return Done{};
}

Result<> Application::verifyOld(const PlannedItem& item, const Place& staged) {
  BOUGH_ASSIGN(const Found old, look(staged.folderFd, staged.name));
  if (old.exists && !sameFile(old.identity, item.old)) return race(item, Why::Replaced, true);
  if (old.exists && !sameState(old, item)) return race(item, Why::Changed, true);
  return Done{};
}

Result<> Application::put(std::size_t index, const Place& staged, const Place& target, bool strict) {
  const PlannedItem& item = prepared_.items[index];
  const Identity& fresh = decided_.items[index].identity;
  if (item.replaces) {
    auto swapped = swapNames(staged, target, fresh);
    if (swapped) return strict ? verifyOld(item, staged) : Result<>(Done{});
    if (swapped.error().errnum != ENOENT) return swapped;
    BOUGH_TRY(race(item, Why::Vanished, strict));
    return moveName(staged, target);
  }
  BOUGH_ASSIGN(const Found there, look(target.folderFd, target.name));
  BOUGH_ASSIGN(const Found left, look(staged.folderFd, staged.name));
  const bool isStaged = left.exists && sameFile(left.identity, fresh);
  // With a link in the place of a rename both names may be there.
  if (there.exists && sameFile(there.identity, fresh)) return isStaged ? unlinkName(staged) : Result<>(Done{});
  if (!isStaged) return Done{};
  auto moved = moveName(staged, target);
  if (moved || moved.error().errnum != EEXIST) return moved;
  BOUGH_TRY(race(item, Why::Appeared, strict));
  return swapNames(staged, target, fresh);
}

Result<> Application::remove(std::size_t index, const Place& staged, const Place& target, bool strict) {
  const PlannedItem& item = prepared_.items[index];
  BOUGH_ASSIGN(const Found kept, look(staged.folderFd, staged.name));
  BOUGH_ASSIGN(const Found there, look(target.folderFd, target.name));
  if (kept.exists) {
    return there.exists && sameFile(there.identity, kept.identity) ? unlinkName(target) : Result<>(Done{});
  }
  if (!there.exists) return strict ? race(item, Why::Vanished, true) : Result<>(Done{});
  if (!sameFile(there.identity, item.old)) {
    // After a crash this may as well be a name given anew after the removal was complete.
    return strict ? race(item, Why::Replaced, true) : Result<>(Done{});
  }
  BOUGH_TRY(moveName(target, staged));
  return strict ? verifyOld(item, staged) : Result<>(Done{});
}

Result<> Application::setMeta(const PlannedItem& item, const FolderMeta& meta, bool strict) {
  BOUGH_ASSIGN(const auto folder, openIfThere(folders_, item.path));
  const int fd = folder ? folder->get() : -1;
  Found is;
  if (folder) {
    BOUGH_ASSIGN(is, look(fd, ""));
  }
  if (!is.exists) return race(item, Why::Vanished, strict);
  if (!sameFile(is.identity, item.old)) return race(item, Why::Replaced, strict);
  bool owned = true;
  if (meta.uid || meta.gid) {
    BOUGH_ASSIGN(owned, setOwner(fd, "", meta.uid.value_or(is.uid), meta.gid.value_or(is.gid), item.path, notApplied));
  }
  if (meta.xattrs) BOUGH_TRY(writeXattrs(fd, "", *meta.xattrs, item.path, notApplied));
  // A change of owner may clear mode bits, so the mode comes after it, also if it is to stay.
  const std::uint32_t mode = meta.mode.value_or(is.mode);
  return setMode(fd, "", Kind::Directory, mode, owned, item.path, notApplied);
}

Result<> Application::swapOne(std::size_t index, bool strict) {
  const PlannedItem& item = prepared_.items[index];
  if (item.type == Type::Meta) return Done{};
  if (item.type == Type::Put && !decided_.items[index].present) return Done{};
  errorPath = item.path;
  BOUGH_ASSIGN(const auto staged, stagedOf(index));
  BOUGH_ASSIGN(const auto target, targetOf(index));
  if (!target || !staged) return race(item, Why::Vanished, strict);
  if (item.type == Type::Put) {
    BOUGH_TRY(put(index, staged->place, target->place, strict));
  } else {
    BOUGH_TRY(remove(index, staged->place, target->place, strict));
  }
  failPoint("commit.swapped");
  return Done{};
}

Result<> Application::swapAll(bool strict) {
  for (std::size_t i = 0; i < prepared_.items.size(); ++i) BOUGH_TRY(swapOne(i, strict));
  for (const PlannedItem& item : prepared_.items) {
    if (item.type != Type::Meta) continue;
    errorPath = item.path;
    BOUGH_TRY(setMeta(item, item.becomes, strict));
    failPoint("commit.meta");
  }
  return Done{};
}

Result<> Application::keepOne(std::size_t index) {
  const PlannedItem& item = prepared_.items[index];
  BOUGH_ASSIGN(const auto staged, stagedOf(index));
  if (!staged) return Done{};
  const Place& place = staged->place;
  BOUGH_ASSIGN(const Found old, look(place.folderFd, place.name));
  if (!old.exists) return Done{};
  errorPath = item.path;
  // The copy in `kept` was made before the decision. Only what somebody changed since has to be copied again.
  bool current = item.replaces && sameState(old, item);
  if (current && old.kind == Kind::Directory) {
    BOUGH_ASSIGN(const auto digest, digestOf(place));
    current = digest && decided_.items[index].keptDigest == digest;
  }
  if (current) return Done{};
  const std::string name = std::to_string(index);
  BOUGH_TRY(removeTree(keptFd_, name));
  CopiedLinks links;
  std::vector<NotApplied> ignored;  // of the copy, not of the base
  BOUGH_TRY(copyTree(place.folderFd, place.name, {keptFd_, name}, links, item.path, true, ignored));
  failPoint("commit.kept.again");
  return Done{};
}

Result<> Application::keepAll() {
  for (std::size_t i = 0; i < prepared_.items.size(); ++i) {
    if (prepared_.items[i].beside) BOUGH_TRY(keepOne(i));
  }
  failPoint("commit.kept");
  for (std::size_t i = 0; i < prepared_.items.size(); ++i) {
    if (!prepared_.items[i].beside) continue;
    errorPath = prepared_.items[i].path;
    BOUGH_ASSIGN(const auto staged, stagedOf(i));
    if (staged) BOUGH_TRY(removeTree(staged->place.folderFd, staged->place.name));
    failPoint("commit.cleared");
  }
  return Done{};
}

void Application::setFolderTimes() {
  // A folder whose time cannot be set (another owner's) keeps the present one; that is no reason to fail.
  for (const PlannedFolder& folder : prepared_.folders) {
    if (!folder.onlyReplaced) continue;
    auto fd = openIfThere(folders_, folder.path);
    if (fd && *fd) (void)setTimes((*fd)->get(), "", nullptr, folder.identity.mtime).ok();
  }
  for (const PlannedItem& item : prepared_.items) {
    if (item.type != Type::Meta || !item.becomes.mtime) continue;
    auto fd = openIfThere(folders_, item.path);
    if (fd && *fd) (void)setTimes((*fd)->get(), "", nullptr, *item.becomes.mtime).ok();
  }
  failPoint("commit.times");
}

Result<Applied> Application::outcome() {
  Applied applied;
  applied.boot = bootId();
  for (std::size_t i = 0; i < prepared_.items.size(); ++i) {
    const PlannedItem& item = prepared_.items[i];
    const StagedItem& staged = decided_.items[i];
    ItemOutcome left;
    left.path = item.path;
    if (item.type == Type::Put && !staged.present) {
      left.leftOut = true;
      applied.items.push_back(std::move(left));
      continue;
    }
    Found now;
    BOUGH_ASSIGN(const auto target, targetOf(i));
    if (target) {
      BOUGH_ASSIGN(now, look(target->place.folderFd, target->place.name));
    }
    if (item.type == Type::Meta) {
      left.present = now.exists;
      left.kind = now.kind;
      left.identity = now.identity;
      applied.items.push_back(std::move(left));
      continue;
    }
    BOUGH_ASSIGN(const Found kept, look(keptFd_, std::to_string(i)));
    if (kept.exists) left.root = prepared_.firstRoot + static_cast<std::uint32_t>(i);
    if (item.type == Type::Put) {
      left.present = true;
      left.kind = staged.kind;
      // What somebody else made of it since is not what this transaction left.
      const bool ours = now.exists && sameFile(now.identity, staged.identity) &&
                        now.identity.size == staged.identity.size &&
                        (now.kind == Kind::Directory || now.identity.mtime == staged.identity.mtime);
      left.identity = ours ? now.identity : staged.identity;
      if (ours) {
        BOUGH_ASSIGN(Xattrs xattrs, readXattrs(target->place.folderFd, target->place.name));
        left.attributes = {now.mode, now.uid, now.gid, std::nullopt, std::move(xattrs)};
      }
      if (ours && left.kind == Kind::Directory) {
        BOUGH_ASSIGN(left.digest, digestOf(target->place));
      }
    }
    applied.items.push_back(std::move(left));
  }
  for (const PlannedFolder& folder : prepared_.folders) {
    auto fd = openIfThere(folders_, folder.path);
    if (!fd || !*fd) continue;
    BOUGH_ASSIGN(const Found now, look((*fd)->get(), ""));
    applied.folders.emplace_back(folder.path, now.identity.mtime);
  }
  applied.notApplied = decided_.notApplied;
  applied.notApplied.insert(applied.notApplied.end(), notApplied.begin(), notApplied.end());
  applied.raced = raced;
  return applied;
}

Result<> Application::revertPut(std::size_t index, const Place& staged, const Place& target) {
  const PlannedItem& item = prepared_.items[index];
  const Identity& fresh = decided_.items[index].identity;
  if (!item.replaces) {
    BOUGH_ASSIGN(const Found there, look(target.folderFd, target.name));
    if (!there.exists || !sameFile(there.identity, fresh) || writtenSince(there, decided_.items[index])) return Done{};
    BOUGH_ASSIGN(const Found left, look(staged.folderFd, staged.name));
    return left.exists ? unlinkName(target) : moveName(target, staged);
  }
  BOUGH_ASSIGN(const Found aside, look(staged.folderFd, staged.name + ".old"));
  if (aside.exists && !sameFile(aside.identity, fresh)) BOUGH_TRY(swapNames(staged, target, fresh));
  BOUGH_ASSIGN(const Found old, look(staged.folderFd, staged.name));
  if (!old.exists) {
    // Either nothing was staged here, or the way back stopped after `target` had its old file again.
    return aside.exists ? swapNames(staged, target, fresh) : Result<>(Done{});
  }
  if (sameFile(old.identity, fresh)) return Done{};
  BOUGH_ASSIGN(const Found there, look(target.folderFd, target.name));
  if (there.exists && !sameFile(there.identity, fresh)) return Done{};  // somebody's newer file; the old one stays kept
  if (there.exists && writtenSince(there, decided_.items[index])) return Done{};
  if (!there.exists && !aside.exists) return moveName(staged, target);
  BOUGH_TRY(swapNames(staged, target, old.identity));
  // In the instant of that as well: then it goes back to its name.
  BOUGH_ASSIGN(const Found out, look(staged.folderFd, staged.name));
  return out.exists && writtenSince(out, decided_.items[index]) ? swapNames(staged, target, fresh) : Result<>(Done{});
}

Result<> Application::revertRemove(const Place& staged, const Place& target) {
  BOUGH_ASSIGN(const Found kept, look(staged.folderFd, staged.name));
  if (!kept.exists) return Done{};
  BOUGH_ASSIGN(const Found there, look(target.folderFd, target.name));
  if (there.exists) return sameFile(there.identity, kept.identity) ? unlinkName(staged) : Result<>(Done{});
  return moveName(staged, target);
}

Result<> Application::revertOne(std::size_t index) {
  const PlannedItem& item = prepared_.items[index];
  if (item.type == Type::Put && !decided_.items[index].present) return Done{};
  errorPath = item.path;
  BOUGH_ASSIGN(const auto staged, stagedOf(index));
  BOUGH_ASSIGN(const auto target, targetOf(index));
  if (!target || !staged) return Done{};
  if (item.type == Type::Put) {
    BOUGH_TRY(revertPut(index, staged->place, target->place));
  } else {
    BOUGH_TRY(revertRemove(staged->place, target->place));
  }
  failPoint("commit.reverted");
  return Done{};
}

Result<> Application::revertAll() {
  const std::vector<NotApplied> before = notApplied;
  for (const PlannedItem& item : prepared_.items) {
    if (item.type == Type::Meta) BOUGH_TRY(setMeta(item, item.oldMeta, false));
  }
  for (std::size_t i = prepared_.items.size(); i > 0; --i) {
    if (prepared_.items[i - 1].type != Type::Meta) BOUGH_TRY(revertOne(i - 1));
  }
  BOUGH_TRY(clearStaged(folders_, prepared_));
  for (const PlannedFolder& folder : prepared_.folders) {
    auto fd = openIfThere(folders_, folder.path);
    if (fd && *fd) (void)setTimes((*fd)->get(), "", nullptr, folder.identity.mtime).ok();
  }
  notApplied = before;
  return Done{};
}

Result<> clearStaged(Folders& folders, const Prepared& prepared) {
  for (std::size_t i = 0; i < prepared.items.size(); ++i) {
    if (!prepared.items[i].beside) continue;
    BOUGH_ASSIGN(const auto folder, openIfThere(folders, splitPath(prepared.items[i].path).first));
    if (!folder) continue;
    BOUGH_TRY(removeTree(folder->get(), stagingName(prepared, i)));
    failPoint("commit.unstaged");
  }
  for (const PlannedFolder& folder : prepared.folders) {
    if (!folder.beside) continue;
    auto fd = openIfThere(folders, folder.path);
    if (fd && *fd) (void)setTimes((*fd)->get(), "", nullptr, folder.identity.mtime).ok();
  }
  return Done{};
}

}  // namespace bough::base_commit
