// A file of checked frames (docs/store-format.md): the store's log, and the way its snapshot is read and written. Knows
// nothing of what the frames say, but for the marks that tell how much was durable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

inline constexpr std::size_t kFrameHeader = 12;
inline constexpr std::size_t kMaxFrame = std::size_t{1} << 30;

/// Puts the header before a payload.
std::string frameOf(std::string_view payload);
/// The payload of the frame at the start of `data`; null (data() == nullptr) when there is no whole valid frame.
std::string_view frameAt(std::string_view data);

/// What the caller does with a frame's payload, and what the frame says about durability: 0, or "all bytes before this
/// offset were durable".
struct FrameReader {
  std::function<Result<>(std::string_view payload)> take;
  std::function<std::uint64_t(std::string_view payload)> durableBefore;
};

class LogFile {
 public:
  /// Opens `name` in the folder (makes it if it is not there), reads all its frames and cuts a torn tail.
  /// E_STORE_DAMAGED: bytes that had been durable are not as they were written.
  static Result<std::unique_ptr<LogFile>> open(int folderFd, const std::string& name, const FrameReader& reader);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Writes one frame: after this it survives the death of the process. `useReserve`: also when the disk is full.
  /// On error the file is as before.
  Result<> append(std::string_view payload, bool useReserve);
  /// Makes everything so far durable. `markOf` gives the payload of the mark that says so.
  Result<> sync(const std::function<std::string(std::uint64_t offset)>& markOf);
  std::uint64_t size() const { return end_.load(std::memory_order_relaxed); }
  /// Something was written since the last sync.
  bool dirty() const { return size() > synced_.load(std::memory_order_relaxed); }

 private:
  LogFile(UniqueFd fd, std::string name, std::uint64_t end);
  Result<> keepReserve(std::uint64_t newEnd, bool useReserve);

  UniqueFd fd_;
  std::string name_;
  std::mutex lock_;  // appends
  std::mutex syncLock_;
  std::atomic<std::uint64_t> end_;
  std::atomic<std::uint64_t> synced_{0};  // durable, marks after it not counted
  std::uint64_t allocated_ = 0;
  bool reserves_ = true;  // the file system can allocate ahead
  bool broken_ = false;   // a failed write could not be taken back
};

/// A whole file in memory, read-only; empty if it is empty.
class MappedFile {
 public:
  static Result<MappedFile> open(int folderFd, const std::string& name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) = delete;
  ~MappedFile();
  std::string_view data() const { return {static_cast<const char*>(at_), size_}; }

 private:
  MappedFile(void* at, std::size_t size) : at_(at), size_(size) {}
  void* at_;
  std::size_t size_;
};

}  // namespace bough
