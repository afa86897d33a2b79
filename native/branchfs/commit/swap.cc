// See swap.h.
#include "native/branchfs/commit/swap.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "native/branchfs/commit/place.h"
#include "native/common/fail_point.h"

namespace bough::base_commit {

bool plainRenamesOnly = false;

namespace {

int renameWith(const Place& from, const Place& to, unsigned flags) {
  if (plainRenamesOnly && flags != 0) {
    errno = EINVAL;
    return -1;
  }
  return ::renameat2(from.folderFd, from.name.c_str(), to.folderFd, to.name.c_str(), flags);
}

bool flagUnknown(int errnum) { return errnum == EINVAL || errnum == ENOSYS || errnum == EOPNOTSUPP; }

/// The second half of a swap without RENAME_EXCHANGE: `target` has what it shall have, `aside` holds the old one.
Result<> bringAside(const Place& aside, const Place& staged) {
  if (::renameat(aside.folderFd, aside.name.c_str(), staged.folderFd, staged.name.c_str()) != 0) return sys(errno);
  return Done{};
}

Result<> swapPlainly(const Place& staged, const Place& target, const Place& aside, const Found& fresh) {
  BOUGH_ASSIGN(const Found old, look(target.folderFd, target.name));
  BOUGH_ASSIGN(const Found saved, look(aside.folderFd, aside.name));
  if (!saved.exists) {
    if (!old.exists) return sys(ENOENT);
    const bool files = old.kind != Kind::Directory && fresh.kind != Kind::Directory;
    // With a second name for the old file the rename below replaces it in one step: `target` is never absent.
    if (!files || ::linkat(target.folderFd, target.name.c_str(), aside.folderFd, aside.name.c_str(), 0) != 0) {
      if (::renameat(target.folderFd, target.name.c_str(), aside.folderFd, aside.name.c_str()) != 0) return sys(errno);
    }
    failPoint("commit.swap.aside");
  } else if (old.exists && !sameFile(old.identity, saved.identity) && !sameFile(old.identity, fresh.identity)) {
    return sys(EEXIST);  // somebody took the name while it was free
  }
  if (::renameat(staged.folderFd, staged.name.c_str(), target.folderFd, target.name.c_str()) != 0) return sys(errno);
  // rename(2) does nothing when both names are the same file already.
  BOUGH_ASSIGN(const Found left, look(staged.folderFd, staged.name));
  if (left.exists && ::unlinkat(staged.folderFd, staged.name.c_str(), 0) != 0) return sys(errno);
  failPoint("commit.swap.placed");
  return bringAside(aside, staged);
}

}  // namespace

Result<> swapNames(const Place& staged, const Place& target, const Identity& wanted) {
  BOUGH_ASSIGN(const Found fresh, look(staged.folderFd, staged.name));
  const Place aside{staged.folderFd, staged.name + ".old"};
  if (!fresh.exists) {
    BOUGH_ASSIGN(const Found saved, look(aside.folderFd, aside.name));
    return saved.exists ? bringAside(aside, staged) : Result<>(Done{});
  }
  if (!sameFile(fresh.identity, wanted)) return Done{};
  BOUGH_ASSIGN(const Found saved, look(aside.folderFd, aside.name));
  if (!saved.exists) {
    if (renameWith(staged, target, RENAME_EXCHANGE) == 0) return Done{};
    if (!flagUnknown(errno)) return sys(errno);
  }
  return swapPlainly(staged, target, aside, fresh);
}

Result<> moveName(const Place& from, const Place& to) {
  if (renameWith(from, to, RENAME_NOREPLACE) == 0) return Done{};
  if (!flagUnknown(errno)) return sys(errno);
  // A hard link does not replace anything either. Folders have none: look, then rename.
  if (::linkat(from.folderFd, from.name.c_str(), to.folderFd, to.name.c_str(), 0) == 0) {
    failPoint("commit.move.linked");
    if (::unlinkat(from.folderFd, from.name.c_str(), 0) != 0) return sys(errno);
    return Done{};
  }
  if (errno == EEXIST) return sys(EEXIST);
  BOUGH_ASSIGN(const Found there, look(to.folderFd, to.name));
  if (there.exists) return sys(EEXIST);
  if (::renameat(from.folderFd, from.name.c_str(), to.folderFd, to.name.c_str()) != 0) return sys(errno);
  return Done{};
}

}  // namespace bough::base_commit
