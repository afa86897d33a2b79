// The head of a saved machine: what is where in the file, and the checksums of it (docs/saved-format.md). Used by
// write.cc and read.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "native/common/result.h"

namespace bough::vmm {

inline constexpr std::uint64_t kSavedPage = 4096;
inline constexpr std::uint64_t kSavedBlock = std::uint64_t{2} << 20;
inline constexpr std::uint32_t kSavedVersion = 1;

enum class SavedKind : std::uint32_t {
  kFull = 1,
  /// Only pages that differ from a full one.
  kDiff = 2,
};

/// Names one save: 16 random bytes, and a checksum of its checksums.
using SavedDigest = std::array<std::uint8_t, 20>;
std::string toText(const SavedDigest& digest);

/// Integers of a head, offsets and sizes in bytes of the file.
struct SavedHead {
  SavedKind kind = SavedKind::kFull;
  std::uint32_t cpuDigest = 0;
  std::uint64_t ramBytes = 0;
  /// Pages stored; of a full save all.
  std::uint64_t pages = 0;
  std::uint64_t configBytes = 0;
  std::uint64_t stateBytes = 0;
  std::uint32_t configCrc = 0;
  std::uint32_t stateCrc = 0;
  std::uint32_t tableCrc = 0;
  std::array<std::uint8_t, 16> identity{};
  /// Of a diff: the save that it differs from.
  SavedDigest base{};

  // Where things are follows from what there is.
  std::uint64_t configOffset() const { return kSavedPage; }
  std::uint64_t stateOffset() const { return configOffset() + configBytes; }
  std::uint64_t ramOffset() const;
  std::uint64_t tableOffset() const { return ramOffset() + pages * kSavedPage; }
  std::uint64_t tableBytes() const;
  std::uint64_t fileBytes() const { return tableOffset() + tableBytes(); }

  SavedDigest digest() const;
  /// kSavedPage bytes.
  std::string encode() const;
  /// From the first kSavedPage bytes of a file. Errors: E_SAVED_FORMAT, E_SAVED_VERSION, E_SAVED_DAMAGED. What it
  /// answers has sizes that a machine can have and that do not overflow.
  static Result<SavedHead> decode(std::string_view page);
};

}  // namespace bough::vmm
