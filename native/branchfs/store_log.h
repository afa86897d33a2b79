// Where the branches of one store log to: the current log file and the numbers that are given out once. Store owns one;
// every Branch points to it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "native/branchfs/branch.h"
#include "native/branchfs/log_file.h"
#include "native/branchfs/objects.h"
#include "native/branchfs/records.h"

namespace bough {

class StoreLog final : public ChangeLog {
 public:
  StoreLog() = default;

  /// `counters`: everything below may have been given out in an earlier run. Reserves a new range in `file`.
  Result<> start(std::shared_ptr<LogFile> file, Objects* objects, const Counters& counters);

  Result<> append(const BranchId& branch, const Change& change) override;
  Result<> sync() override;
  /// Objects first, then the records that name them.
  Result<> syncAll();
  NodeId newNode() override { return take(kNode); }
  ObjectId newObject() override { return take(kObject); }
  Epoch newEpoch() { return take(kEpoch); }
  std::uint64_t newGroup() { return take(kGroup); }
  std::uint64_t newCommit() { return take(kCommit); }
  std::uint32_t newTxn() { return static_cast<std::uint32_t>(take(kTxn)); }
  /// The first of `count` root numbers.
  std::uint32_t newRoots(std::uint64_t count) { return static_cast<std::uint32_t>(take(kRoot, count)); }

  /// Writes records as one frame, so that they happen together. `useReserve`: also on a full disk.
  Result<> write(const std::vector<Record>& records, bool useReserve = false);
  Result<> write(const Record& record, bool useReserve = false);

  /// Makes sure that the log covers every number given out, before one of them gets anywhere else on disk.
  Result<> reserveNow() { return reserve(); }
  /// Upper bounds of all numbers given out so far, for a snapshot. `exact`: nobody takes any more.
  Counters counters(bool exact) const;
  std::shared_ptr<LogFile> file() const;
  /// The next file takes over. The caller holds every branch's lock, so nobody appends.
  void switchTo(std::shared_ptr<LogFile> file);

 private:
  static constexpr std::size_t kNumbers = 7;
  enum Number : std::size_t { kNode, kObject, kEpoch, kGroup, kCommit, kTxn, kRoot };
  std::uint64_t take(Number number, std::uint64_t count = 1) {
    return next_[number].fetch_add(count, std::memory_order_relaxed);
  }
  /// Says in the log that more numbers may have been given out, when that is so.
  Result<> reserve();

  mutable std::mutex fileLock_;
  std::shared_ptr<LogFile> file_;
  Objects* objects_ = nullptr;
  std::array<std::atomic<std::uint64_t>, kNumbers> next_{};
  std::array<std::atomic<std::uint64_t>, kNumbers> limit_{};  // what the log says
  std::mutex reserveLock_;
};

}  // namespace bough
