// Opening a store, recovery, folding the log, closing. See store.h and docs/store-format.md.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <utility>

#include "native/branchfs/store.h"
#include "native/common/fail_point.h"
#include "native/common/log.h"

namespace bough {
namespace {

constexpr const char* kFormat = "boughfs store 2";
constexpr const char* kOlderFormat = "boughfs store 1";

std::string logName(std::uint64_t generation) { return "log-" + std::to_string(generation); }

std::set<std::uint64_t> logsIn(int folderFd) {
  std::set<std::uint64_t> found;
  const int fd = ::openat(folderFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return found;
  DIR* dir = ::fdopendir(fd);
  if (!dir) {
    ::close(fd);
    return found;
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    std::uint64_t number = 0;
    if (!name.starts_with("log-")) continue;
    const auto [end, bad] = std::from_chars(name.data() + 4, name.data() + name.size(), number);
    if (bad == std::errc() && end == name.data() + name.size()) found.insert(number);
  }
  ::closedir(dir);
  return found;
}

Result<std::string> readSmall(int folderFd, const char* name) {
  const UniqueFd fd(::openat(folderFd, name, O_RDONLY | O_CLOEXEC));
  if (!fd) return sysError(errno, std::string("open ") + name);
  std::string text(8192, '\0');
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  if (n < 0) return sysError(errno, std::string("read ") + name);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

Result<> writeSmall(int folderFd, const char* name, const std::string& text) {
  const std::string fresh = std::string(name) + ".new";
  const UniqueFd fd(::openat(folderFd, fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return sysError(errno, "make " + fresh);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(fd.get()) != 0) {
    return sysError(errno, "write " + fresh);
  }
  if (::renameat(folderFd, fresh.c_str(), folderFd, name) != 0) return sysError(errno, "rename " + fresh);
  return Done{};
}

/// What went wrong with the store's folder, with a code that says so.
Error folderError(Error error, const std::string& folder) {
  if (!error.code.empty()) return error;
  error.code = error.errnum == ENOSPC || error.errnum == EDQUOT ? "E_NO_SPACE" : "E_IO";
  error.message =
      "The store " + folder + " cannot be opened (" + error.message + "). Check the folder's owner and disk.";
  return error;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(StoreOptions options) {
  std::unique_ptr<Store> store(new Store(std::move(options)));  // NOLINT: the constructor is private
  const std::string& folder = store->options_.folder;
  if (auto done = store->openFolder(); !done) return folderError(done.error(), folder);

  std::vector<std::string> never = store->options_.never;
  never.push_back(folder);
  auto base = Base::open(store->options_.base, store->options_.hide, never);
  if (!base) {
    return Error{base.error().errnum, "E_BASE_GONE",
                 "The base folder " + store->options_.base + " cannot be opened: " +
                     std::strerror(base.error().errnum) + ". Put it back, or start without its branches."};
  }
  store->base_ = std::move(*base);
  auto objects = Objects::open(folder + "/objects");
  if (!objects) return folderError(objects.error(), folder);
  store->objects_ = std::move(*objects);

  UniqueFd journal(::openat(store->folder_.get(), "commit", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!journal) return folderError(sysError(errno, "open commit"), folder);
  auto commit = BaseCommit::open(std::move(journal));
  if (!commit) return folderError(commit.error(), folder);
  store->baseCommit_ = std::move(*commit);
  store->base_->setKept([commits = store->baseCommit_.get()](std::uint32_t root) { return commits->openKept(root); });

  if (auto done = store->readAll(); !done) return folderError(done.error(), folder);
  if (auto done = store->finishCommits(); !done) return done.error();
  store->releaseOrphans();
  store->releaseKept();
  store->sweep();
  store->base_->watch().listen(&store->drift_);
  store->upkeep_ = std::thread([raw = store.get()] { raw->upkeep(); });
  return store;
}

Result<> Store::openFolder() {
  const std::string& folder = options_.folder;
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return sysError(errno, "make " + folder);
  folder_ = UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) return sysError(errno, "open " + folder);
  lockFile_ = UniqueFd(::openat(folder_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lockFile_) return sysError(errno, "open lock");
  if (::flock(lockFile_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{EBUSY, "E_STORE_BUSY",
                 "Another boughfs serves the store " + folder + " already. Stop it, or use its socket."};
  }
  for (const char* name : {"commit", "objects"}) {
    if (::mkdirat(folder_.get(), name, 0700) != 0 && errno != EEXIST)
      return sysError(errno, std::string("make ") + name);
  }
  const std::string expected = std::string(kFormat) + "\n" + options_.base + "\n";
  auto format = readSmall(folder_.get(), "format");
  if (!format) {
    if (format.error().errnum != ENOENT) return format.error();
    if (!logsIn(folder_.get()).empty()) {
      return Error{EIO, "E_STORE_DAMAGED",
                   "The store " + folder + " has lost its file `format`. Restore it from a backup."};
    }
    return writeSmall(folder_.get(), "format", expected);
  }
  if (*format == std::string(kOlderFormat) + "\n" + options_.base + "\n") {
    // From the first record on that the older version does not know it could not read the store any more: so it is
    // told.
    return writeSmall(folder_.get(), "format", expected);
  }
  if (!format->starts_with(std::string(kFormat) + "\n") && !format->starts_with(std::string(kOlderFormat) + "\n")) {
    return Error{EIO, "E_STORE_VERSION",
                 "The store " + folder + " was written by another version of boughfs (" +
                     format->substr(0, format->find('\n')) + "). Use that one, or a new store."};
  }
  if (*format != expected) {
    return Error{ENOENT, "E_BASE_GONE",
                 "The store " + folder + " branches from another folder than " + options_.base + ": " +
                     format->substr(std::string(kFormat).size() + 1) + "Start it with that one."};
  }
  return Done{};
}

Result<> Store::readAll() {
  ledger_.log = &log_;
  BOUGH_ASSIGN(const std::uint64_t generation, readSnapshot(folder_.get(), ledger_, leaseOf()));
  BOUGH_TRY(readLogs(generation));
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  for (const auto& [id, branch] : ledger_.branches) {
    // Writes in place are not in the log: so that nobody takes an old count for a new one, counts jump ahead.
    branch->writes = static_cast<std::uint64_t>(now);
  }
  return Done{};
}

Result<> Store::readLogs(std::uint64_t generation) {
  for (const std::uint64_t one : logsIn(folder_.get())) {
    if (one < generation) {
      ::unlinkat(folder_.get(), logName(one).c_str(), 0);  // a fold got as far as its snapshot
    } else {
      logs_.insert(one);
    }
  }
  if (logs_.empty()) logs_.insert(generation == 0 ? 1 : generation);

  const LeaseOf lease = leaseOf();
  FrameReader reader;
  reader.take = [&](std::string_view payload) -> Result<> {
    Decoder in(payload);
    while (in.ok() && !in.atEnd()) {
      const Record one = decodeRecord(in, lease);
      if (!in.ok()) break;
      BOUGH_TRY(ledger_.apply(one));
    }
    if (!in.ok())
      return Error{EIO, "E_STORE_DAMAGED", "A record of the store's log makes no sense. Restore it from a backup."};
    return Done{};
  };
  reader.durableBefore = [&](std::string_view payload) -> std::uint64_t {
    Decoder in(payload);
    const Record one = decodeRecord(in, lease);
    const auto* mark = std::get_if<Synced>(&one);
    return in.ok() && mark ? mark->offset : 0;
  };
  std::shared_ptr<LogFile> last;
  for (const std::uint64_t one : logs_) {
    BOUGH_ASSIGN(last, LogFile::open(folder_.get(), logName(one), reader));
    generation_ = one;
  }
  if (::fsync(folder_.get()) != 0) return sysError(errno, "sync the store's folder");
  return log_.start(std::move(last), objects_.get(), ledger_.counters);
}

void Store::sweep() {
  // A lease that nobody else holds makes garbage at once.
  const auto done = objects_->forEach([this](ObjectId id) { objects_->lease(id).reset(); });
  if (!done) logLine("the objects cannot be listed: " + done.error().message);
}

Result<> Store::fold(bool last) {
  BOUGH_TRY(log_.syncAll());
  LedgerCopy copy;
  std::uint64_t next = 0;
  {
    const std::lock_guard guard(lock_);
    std::vector<std::unique_lock<std::shared_mutex>> holds;
    for (const auto& [id, branch] : ledger_.branches) holds.emplace_back(branch->lock);
    BOUGH_TRY(log_.sync());  // the little that came meanwhile: the next log stands on it
    next = generation_ + 1;
    FrameReader nothing;
    nothing.take = [](std::string_view) -> Result<> { return Done{}; };
    nothing.durableBefore = [](std::string_view) -> std::uint64_t { return 0; };
    BOUGH_ASSIGN(std::shared_ptr<LogFile> file, LogFile::open(folder_.get(), logName(next), nothing));
    Encoder out;
    ledger_.counters = log_.counters(last);
    encode(out, ledger_.counters);
    BOUGH_TRY(file->append(out.str(), true));
    failPoint("store.fold.log");
    copy = copyOf(ledger_);
    log_.switchTo(std::move(file));
    generation_ = next;
    logs_.insert(next);
  }
  if (::fsync(folder_.get()) != 0) return sysError(errno, "sync the store's folder");
  BOUGH_TRY(writeSnapshot(folder_.get(), copy, next));
  const std::lock_guard guard(lock_);
  while (!logs_.empty() && *logs_.begin() < next) {
    ::unlinkat(folder_.get(), logName(*logs_.begin()).c_str(), 0);
    logs_.erase(logs_.begin());
  }
  return Done{};
}

void Store::stopMounts() {
  for (const auto& [id, branch] : ledger_.branches) {
    const std::lock_guard listeners(branch->listenersLock);
    branch->listeners.clear();
  }
  for (auto& [id, mount] : mounts_) mount->stop();
  mounts_.clear();
}

Result<> Store::close() {
  {
    const std::lock_guard guard(upkeepLock_);
    if (closed_) return Done{};
    stopping_ = true;
  }
  upkeepWake_.notify_all();
  if (upkeep_.joinable()) upkeep_.join();
  if (base_) base_->watch().unlisten(&drift_);
  stopMounts();
  views_.clear();
  deadViews_.clear();
  dead_.clear();
  closed_ = true;
  releaseKept();
  collectGarbage();
  return fold(true);
}

Store::~Store() {
  {
    const std::lock_guard guard(upkeepLock_);
    stopping_ = true;
  }
  upkeepWake_.notify_all();
  if (upkeep_.joinable()) upkeep_.join();
  if (base_) base_->watch().unlisten(&drift_);
  stopMounts();
  views_.clear();
}

}  // namespace bough
