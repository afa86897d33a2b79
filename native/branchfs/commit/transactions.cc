// See transactions.h.
#include "native/branchfs/commit/transactions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "native/branchfs/commit/place.h"
#include "native/common/fail_point.h"

namespace bough::base_commit {

namespace {

constexpr std::string_view kDeadPrefix = "dead-";

std::optional<Txn> numberOf(const std::string& name) {
  Txn txn = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), txn);
  if (error != std::errc() || end != name.data() + name.size() || txn == 0) return std::nullopt;
  return txn;
}

}  // namespace

Result<std::vector<Txn>> Transactions::numbers() const {
  BOUGH_ASSIGN(const std::vector<std::string> all, names(dir_.get()));
  std::vector<Txn> found;
  for (const std::string& name : all) {
    if (const auto txn = numberOf(name)) found.push_back(*txn);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<> Transactions::scan() {
  BOUGH_ASSIGN(const std::vector<std::string> all, names(dir_.get()));
  for (const std::string& name : all) {
    if (name.starts_with(kDeadPrefix)) BOUGH_TRY(removeTree(dir_.get(), name));
    const auto txn = numberOf(name);
    if (!txn) continue;
    BOUGH_ASSIGN(const Folder folder, open(*txn));
    auto file = JournalFile::open(folder.fd.get());
    if (!file) {
      if (file.error().errnum == ENOENT) continue;
      return file.error();
    }
    BOUGH_ASSIGN(const Journal journal, file->load());
    if (!journal.prepared || !journal.decided || journal.reverting || journal.rolledBack) continue;
    learn(*txn,
          {journal.prepared->firstRoot, journal.prepared->items.size(), journal.applied.has_value(), journal.done});
  }
  return Done{};
}

Result<Folder> Transactions::make(Txn txn) {
  const std::string name = std::to_string(txn);
  if (::mkdirat(dir_.get(), name.c_str(), 0700) != 0) return sys(errno);
  Folder folder;
  folder.fd.reset(::openat(dir_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.fd || ::mkdirat(folder.fd.get(), kKeptName, 0700) != 0) {
    const int why = errno;
    BOUGH_TRY(removeTree(dir_.get(), name));
    return sys(why);
  }
  folder.kept.reset(::openat(folder.fd.get(), kKeptName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.kept) return sys(errno);
  return folder;
}

Result<Folder> Transactions::open(Txn txn) const {
  const std::string name = std::to_string(txn);
  Folder folder;
  folder.fd.reset(::openat(dir_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.fd) return sys(errno);
  folder.kept.reset(::openat(folder.fd.get(), kKeptName, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder;
}

Result<> Transactions::syncNames(const Folder& folder) const {
  if (::fsync(folder.kept.get()) != 0) return sys(errno);
  if (::fsync(folder.fd.get()) != 0) return sys(errno);
  if (::fsync(dir_.get()) != 0) return sys(errno);
  return Done{};
}

Result<> Transactions::destroy(Txn txn) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (const auto known = known_.find(txn); known != known_.end()) {
      byRoot_.erase(known->second.firstRoot);
      known_.erase(known);
    }
  }
  const std::string name = std::to_string(txn);
  const std::string dead = std::string(kDeadPrefix) + name;
  if (::renameat(dir_.get(), name.c_str(), dir_.get(), dead.c_str()) != 0) {
    if (errno == ENOENT) return Done{};
    return sys(errno);
  }
  failPoint("commit.dead");
  return removeTree(dir_.get(), dead);
}

void Transactions::learn(Txn txn, const Known& known) {
  const std::lock_guard<std::mutex> guard(lock_);
  known_[txn] = known;
  byRoot_[known.firstRoot] = txn;
}

std::optional<Known> Transactions::find(Txn txn) const {
  const std::lock_guard<std::mutex> guard(lock_);
  const auto known = known_.find(txn);
  if (known == known_.end()) return std::nullopt;
  return known->second;
}

std::vector<Txn> Transactions::committed() const {
  const std::lock_guard<std::mutex> guard(lock_);
  std::vector<Txn> all;
  for (const auto& [txn, known] : known_) {
    if (known.committed) all.push_back(txn);
  }
  return all;
}

Result<std::pair<UniqueFd, std::string>> Transactions::keptPlace(std::uint32_t root) const {
  Txn txn = 0;
  std::uint32_t index = 0;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    auto next = byRoot_.upper_bound(root);
    if (next == byRoot_.begin()) return sys(ENOENT);
    --next;
    index = root - next->first;
    txn = next->second;
    if (index >= known_.at(txn).items) return sys(ENOENT);
  }
  BOUGH_ASSIGN(Folder folder, open(txn));
  if (!folder.kept) return sys(ENOENT);
  return std::pair<UniqueFd, std::string>(std::move(folder.kept), std::to_string(index));
}

}  // namespace bough::base_commit
