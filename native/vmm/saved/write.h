// Writes a machine into a file, from a process in which it stands still. Used by the method save, in the frozen child.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "native/common/result.h"
#include "native/vmm/memory/guest_memory.h"
#include "native/vmm/saved/read.h"

namespace bough::vmm {

/// What is to be saved; it must not change meanwhile.
struct ToSave {
  const GuestMemory& memory;
  std::string_view config;
  std::string_view state;
  std::uint32_t cpuDigest = 0;
};

struct Saved {
  std::string digest;
  /// The file's size, with its holes.
  std::uint64_t bytes = 0;
  /// Pages with data that were written.
  std::uint64_t pages = 0;
};

/// Whether `fd` can be written to: an empty regular file, open for reading and writing, not for appending. Errors:
/// E_SAVE_TARGET.
Result<Done> checkTarget(int fd);

/// Writes all of it, or what differs from `base`, and makes it durable; the head comes last, so that a file that is not
/// complete has none. In the error case the file is empty again. Errors: E_NO_SPACE, E_IO.
Result<Saved> writeSaved(int fd, const ToSave& machine, const SavedFile* base);

}  // namespace bough::vmm
