// Reads saved machines: what is wrong with one is found before anything runs. Used by the methods load and save (for
// the base of a difference). The file may come from anybody.
#pragma once

#include <string>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/memory/guest_memory.h"
#include "native/vmm/saved/head.h"

namespace bough::vmm {

class SavedFile {
 public:
  /// Checks head, size, configuration, state and table; not the RAM. Errors: E_SAVED_FORMAT (none, or unfinished),
  /// E_SAVED_VERSION, E_SAVED_TRUNCATED, E_SAVED_DAMAGED, E_IO.
  static Result<SavedFile> open(UniqueFd fd);

  const SavedHead& head() const { return head_; }
  const std::string& config() const { return config_; }
  const std::string& state() const { return state_; }
  int fd() const { return fd_.get(); }
  /// For who goes on reading the file after this object.
  UniqueFd takeFd() { return std::move(fd_); }

  /// A full save: compares every block of RAM with its checksum; reads all of the file that is no hole. Errors:
  /// E_SAVED_DAMAGED, naming the first block.
  Result<Done> checkRam() const;

  struct StoredPage {
    std::uint64_t page = 0;
    std::uint32_t crc = 0;
  };
  /// A diff: its pages in the order of the file, which is ascending.
  Result<std::vector<StoredPage>> storedPages() const;

 private:
  UniqueFd fd_;
  SavedHead head_;
  std::string config_;
  std::string state_;
  std::string table_;
};

/// SavedFile::checkRam() of a file that was opened before, by another process; does not close `fd`.
Result<Done> checkRamOf(int fd);

/// Whether `base` can be what a save of a machine with `ramBytes` is compared with. Errors: E_SAVED_BASE.
Result<Done> checkBase(const SavedFile& base, std::uint64_t ramBytes);

/// The RAM of `full`, mapped, with the pages of `diff` (or null) put over it; those are always compared with their
/// checksums, the rest if `check`. Errors: E_SAVED_BASE (`full` is a diff, or not the one that `diff` needs),
/// E_SAVED_DAMAGED, E_NO_MEMORY, E_IO.
Result<GuestMemory> loadRam(const SavedFile& full, const SavedFile* diff, bool check);

}  // namespace bough::vmm
