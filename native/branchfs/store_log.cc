// See store_log.h.
#include "native/branchfs/store_log.h"

#include <utility>

namespace bough {
namespace {

// How far ahead each kind of number is reserved: a crash skips at most that many.
constexpr std::array<std::uint64_t, 7> kSteps = {65536, 65536, 4096, 4096, 4096, 256, 4096};

std::string markOf(std::uint64_t offset) {
  Encoder out;
  encode(out, Synced{offset});
  return out.take();
}

Counters countersOf(const std::array<std::uint64_t, 7>& values) {
  Counters result;
  result.node = values[0];
  result.object = values[1];
  result.epoch = values[2];
  result.group = values[3];
  result.commit = values[4];
  result.txn = static_cast<std::uint32_t>(values[5]);
  result.root = static_cast<std::uint32_t>(values[6]);
  return result;
}

}  // namespace

Result<> StoreLog::start(std::shared_ptr<LogFile> file, Objects* objects, const Counters& counters) {
  file_ = std::move(file);
  objects_ = objects;
  const std::array<std::uint64_t, kNumbers> from = {counters.node,   counters.object, counters.epoch, counters.group,
                                                    counters.commit, counters.txn,    counters.root};
  for (std::size_t i = 0; i < kNumbers; i++) {
    next_[i] = from[i];
    limit_[i] = from[i];
  }
  return Done{};
}

Result<> StoreLog::reserve() {
  const auto covered = [this] {
    for (std::size_t i = 0; i < kNumbers; i++) {
      if (next_[i].load(std::memory_order_relaxed) > limit_[i].load(std::memory_order_acquire)) return false;
    }
    return true;
  };
  if (covered()) return Done{};
  const std::lock_guard guard(reserveLock_);
  if (covered()) return Done{};
  std::array<std::uint64_t, kNumbers> limits{};
  for (std::size_t i = 0; i < kNumbers; i++) limits[i] = next_[i] + kSteps[i];
  Encoder out;
  encode(out, countersOf(limits));
  BOUGH_TRY(file()->append(out.str(), true));
  for (std::size_t i = 0; i < kNumbers; i++) limit_[i].store(limits[i], std::memory_order_release);
  return Done{};
}

Result<> StoreLog::append(const BranchId& branch, const Change& change) {
  thread_local Encoder out;
  out.clear();
  BOUGH_TRY(reserve());
  encodeChanged(out, branch, change);
  return file()->append(out.str(), false);
}

Result<> StoreLog::write(const std::vector<Record>& records, bool useReserve) {
  BOUGH_TRY(reserve());
  Encoder out;
  for (const Record& record : records) encode(out, record);
  return file()->append(out.str(), useReserve);
}

Result<> StoreLog::write(const Record& record, bool useReserve) {
  BOUGH_TRY(reserve());
  Encoder out;
  encode(out, record);
  return file()->append(out.str(), useReserve);
}

Result<> StoreLog::sync() { return file()->sync(markOf); }

Result<> StoreLog::syncAll() {
  const std::shared_ptr<LogFile> current = file();
  if (!current->dirty()) return Done{};
  BOUGH_TRY(objects_->syncAll());
  return current->sync(markOf);
}

Counters StoreLog::counters(bool exact) const {
  std::array<std::uint64_t, kNumbers> values{};
  for (std::size_t i = 0; i < kNumbers; i++) values[i] = exact ? next_[i].load() : limit_[i].load();
  return countersOf(values);
}

std::shared_ptr<LogFile> StoreLog::file() const {
  const std::lock_guard guard(fileLock_);
  return file_;
}

void StoreLog::switchTo(std::shared_ptr<LogFile> file) {
  const std::lock_guard guard(fileLock_);
  file_ = std::move(file);
}

}  // namespace bough
