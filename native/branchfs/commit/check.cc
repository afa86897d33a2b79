// See check.h.
#include "native/branchfs/commit/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <unordered_set>

#include "native/branchfs/commit/xattrs.h"

namespace bough::base_commit {

namespace {

using Why = CommitConflict::Why;

const std::string& pathOf(const Item& item) {
  return std::visit([](const auto& one) -> const std::string& { return one.path; }, item);
}
const Expect& expectOf(const Item& item) {
  return std::visit([](const auto& one) -> const Expect& { return one.expect; }, item);
}

Error invalid(const std::string& words) {
  return Error{EINVAL, "E_BAD_REQUEST", "The commit's list of paths is not in order: " + words};
}

bool isName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

Result<> validateNode(const NewNode& node, const std::string& path) {
  if (node.kind != Kind::Directory && !node.children.empty())
    return invalid(shown(path) + " has children but is no folder.");
  if (node.kind == Kind::Directory && node.linkTo) return invalid("the folder " + shown(path) + " cannot be a link.");
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, child] : node.children) {
    if (!isName(name) || !seen.insert(name).second)
      return invalid(shown(joinPath(path, name)) + " is no name or twice there.");
    BOUGH_TRY(validateNode(child, joinPath(path, name)));
  }
  return Done{};
}

bool hasAttributes(const Found& is, const Xattrs& xattrs, const FolderMeta& wanted) {
  return wanted.mode.value_or(is.mode) == is.mode && wanted.uid.value_or(is.uid) == is.uid &&
         wanted.gid.value_or(is.gid) == is.gid && (!wanted.xattrs || *wanted.xattrs == xattrs);
}

/// Walks everything below a folder that is to go away.
class Below {
 public:
  Below(const Found& journal, const std::optional<Time>& since) : journal_(journal), since_(since) {}

  /// The first path below (relative) that changed later than `since`, if one did.
  Result<std::optional<std::string>> walk(int folderFd, const std::string& path) {
    BOUGH_ASSIGN(const std::vector<std::string> below, names(folderFd));
    for (const std::string& name : below) {
      const std::string at = joinPath(path, name);
      BOUGH_ASSIGN(const Found found, look(folderFd, name));
      if (!found.exists) continue;
      if (found.mountPoint) {
        stopper = at;
        return sys(EBUSY);
      }
      if (found.fixed) {
        stopper = at;
        return sys(EPERM);
      }
      if (since_ && found.identity.ctime > *since_) return std::optional<std::string>(at);
      if (found.kind != Kind::Directory) continue;
      if (sameFile(found.identity, journal_.identity)) {
        stopper = at;
        return sys(EBUSY);
      }
      const UniqueFd folder(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!folder) {
        stopper = at;
        return sys(errno);
      }
      BOUGH_ASSIGN(auto changed, walk(folder.get(), at));
      if (changed) return changed;
    }
    return std::optional<std::string>();
  }

  std::string stopper;  // the path that an error is about

 private:
  const Found& journal_;
  std::optional<Time> since_;
};

class Checker {
 public:
  Checker(Folders& folders, const Found& journal, bool linked, Checked& checked)
      : folders_(folders), journal_(journal), linked_(linked), checked_(checked) {}

  Result<> run(const Item& item) {
    const std::string& path = pathOf(item);
    CheckedItem result;
    const auto [folderPath, name] = splitPath(path);
    auto folder = folders_.open(folderPath);
    if (!folder) {
      const int why = folder.error().errnum;
      if (why == ENOENT || why == ENOTDIR || why == ELOOP || why == EXDEV) return conflict(path, Why::Vanished);
      return failed(why, "Looking at", folderPath);
    }
    const int folderFd = (*folder)->get();
    auto parent = look(folderFd, "");
    if (!parent) return failed(parent.error().errnum, "Looking at", folderPath);
    auto target = look(folderFd, name);
    if (!target) return failed(target.error().errnum, "Looking at", path);
    result.parent = *parent;
    result.target = *target;

    auto asExpected = compare(expectOf(item), *target, folderFd, name, path);
    if (!asExpected) return failed(asExpected.error().errnum, "Looking at", path);
    if (!*asExpected) return keep(std::move(result));
    if (const auto* meta = std::get_if<Meta>(&item)) {
      BOUGH_TRY(checkMeta(*meta, folderFd, name, result));
    } else {
      BOUGH_TRY(checkWritable(folderFd, folderPath, *parent, path, *target));
      if (target->exists && target->kind == Kind::Directory) BOUGH_TRY(checkBelow(item, folderFd, name, path));
    }
    return keep(std::move(result));
  }

 private:
  Result<> keep(CheckedItem result) {
    checked_.items.push_back(std::move(result));
    return Done{};
  }
  Result<> conflict(const std::string& path, Why why) {
    checked_.conflicts.push_back({path, why});
    return keep({});
  }
  Error failed(int errnum, const std::string& what, const std::string& path) {
    checked_.errorPath = path;
    return pathError(errnum, what, path);
  }

  Result<bool> compare(const Expect& expect, const Found& found, int folderFd, const std::string& name,
                       const std::string& path) {
    const auto differs = [&](Why why) -> Result<bool> {
      checked_.conflicts.push_back({path, why});
      return false;
    };
    if (expect.how == Expect::How::Absent) return found.exists ? differs(Why::Appeared) : true;
    if (!found.exists) return differs(Why::Vanished);
    if (found.kind != expect.kind || !sameFile(found.identity, expect.identity)) return differs(Why::Replaced);
    if (expect.how == Expect::How::SameFile || found.kind == Kind::Directory) return true;
    const Identity& is = found.identity;
    const Identity& was = expect.identity;
    if (is.size != was.size || is.mtime != was.mtime) return differs(Why::Changed);
    if (linked_ || is.ctime == was.ctime) return true;
    if (!expect.attributes) return differs(Why::Changed);
    Xattrs xattrs;
    if (expect.attributes->xattrs) {
      BOUGH_ASSIGN(xattrs, readXattrs(folderFd, name));
    }
    return hasAttributes(found, xattrs, *expect.attributes) ? true : differs(Why::Changed);
  }

  Result<> checkMeta(const Meta& meta, int folderFd, const std::string& name, CheckedItem& result) {
    const Found& is = result.target;
    auto xattrs = readXattrs(folderFd, name);
    if (!xattrs) return failed(xattrs.error().errnum, "Reading the extended attributes of", meta.path);
    result.xattrs = std::move(*xattrs);
    if (!hasAttributes(is, result.xattrs, meta.was)) {
      checked_.conflicts.push_back({meta.path, Why::Changed});
      return Done{};
    }
    if (is.fixed) return failed(EPERM, "Changing", meta.path);
    return checkMount(folderFd, meta.path);
  }

  Result<> checkMount(int folderFd, const std::string& path) {
    struct statvfs fs = {};
    if (::fstatvfs(folderFd, &fs) != 0) return failed(errno, "Looking at", path);
    if (fs.f_flag & ST_RDONLY) return failed(EROFS, "Changing", path);
    return Done{};
  }

  /// What a swap would meet later, said early. The system has the last word there.
  Result<> checkWritable(int folderFd, const std::string& folderPath, const Found& parent, const std::string& path,
                         const Found& target) {
    BOUGH_TRY(checkMount(folderFd, folderPath));
    if (parent.fixed) return failed(EPERM, "Changing names in", folderPath);
    if (::faccessat(folderFd, ".", W_OK | X_OK, AT_EACCESS) != 0) return failed(errno, "Changing names in", folderPath);
    if (!target.exists) return Done{};
    if (target.fixed) return failed(EPERM, "Replacing or removing", path);
    if (target.mountPoint) return failed(EBUSY, "Replacing or removing", path);
    const bool sticky = (parent.mode & S_ISVTX) != 0;
    const uid_t me = ::geteuid();
    if (sticky && me != 0 && me != parent.uid && me != target.uid) return failed(EPERM, "Replacing or removing", path);
    return Done{};
  }

  Result<> checkBelow(const Item& item, int folderFd, const std::string& name, const std::string& path) {
    const Expect& expect = expectOf(item);
    const UniqueFd folder(::openat(folderFd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return failed(errno, "Looking into", path);
    auto self = look(folder.get(), "");
    if (!self) return failed(self.error().errnum, "Looking at", path);
    if (sameFile(self->identity, journal_.identity)) return failed(EBUSY, "Replacing or removing", path);
    const bool unchanged = expect.how == Expect::How::Unchanged;
    Below below(journal_, unchanged && !linked_ ? expect.since : std::nullopt);
    auto changed = below.walk(folder.get(), path);
    if (!changed)
      return failed(changed.error().errnum, "Replacing or removing", below.stopper.empty() ? path : below.stopper);
    if (*changed) {
      checked_.conflicts.push_back({**changed, Why::BelowChanged});
      return Done{};
    }
    if (unchanged && !linked_ && expect.digest) {
      auto digest = treeDigest(folder.get());
      if (!digest) return failed(digest.error().errnum, "Looking into", path);
      if (*digest != *expect.digest) checked_.conflicts.push_back({path, Why::BelowChanged});
    }
    return Done{};
  }

  Folders& folders_;
  const Found& journal_;
  bool linked_;
  Checked& checked_;
};

}  // namespace

Result<> validate(const Transaction& transaction) {
  if (transaction.txn == 0 || transaction.firstRoot == 0) return invalid("numbers start at 1.");
  std::unordered_set<std::string_view> all;
  std::unordered_set<std::string_view> whole;  // nothing may be below these
  for (const Item& item : transaction.items) {
    const std::string_view path = pathOf(item);
    const bool isMeta = std::holds_alternative<Meta>(item);
    if (!all.insert(path).second) return invalid(shown(path) + " is there twice.");
    if (path.empty() && !isMeta) return invalid("the base folder itself cannot be replaced.");
    for (std::size_t at = 0; !path.empty();) {
      const std::size_t end = path.find('/', at);
      if (!isName(path.substr(at, end == std::string_view::npos ? end : end - at)))
        return invalid(shown(path) + " is no path.");
      if (end == std::string_view::npos) break;
      if (whole.contains(path.substr(0, end))) return invalid(shown(path) + " is below another path that is replaced.");
      at = end + 1;
    }
    if (!isMeta) whole.insert(path);
    if (const auto* put = std::get_if<Put>(&item)) BOUGH_TRY(validateNode(put->node, put->path));
    if (isMeta && (expectOf(item).how == Expect::How::Absent || expectOf(item).kind != Kind::Directory)) {
      return invalid(shown(path) + " has to be a folder.");
    }
    if (std::holds_alternative<Remove>(item) && expectOf(item).how == Expect::How::Absent) {
      return invalid(shown(path) + " cannot be removed and absent.");
    }
  }
  return Done{};
}

Result<> check(Folders& folders, const Found& journal, const Transaction& transaction, bool linked, Checked& checked) {
  checked.items.reserve(transaction.items.size());
  Checker checker(folders, journal, linked, checked);
  for (const Item& item : transaction.items) BOUGH_TRY(checker.run(item));
  return Done{};
}

}  // namespace bough::base_commit
