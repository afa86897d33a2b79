// Writes a cpio archive in the format "newc", as the kernel unpacks it at boot (its
// Documentation/driver-api/early-userspace/ buffer-format.rst). The same entries give the same bytes: no times, owner
// root, sorted by name. Used by make_initramfs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace bough::guest {

class NewcArchive {
 public:
  /// Paths are relative, without a leading slash. Folders above a path are made as well. A path that comes again
  /// replaces the one before.
  void addFolder(const std::string& path, std::uint32_t permissions = 0755);
  void addFile(const std::string& path, std::string content, std::uint32_t permissions);
  void addCharacterDevice(const std::string& path, std::uint32_t permissions, std::uint32_t major, std::uint32_t minor);

  std::string bytes() const;

 private:
  struct Entry {
    std::uint32_t mode = 0;
    std::uint32_t major = 0, minor = 0;
    std::string content;
  };

  void addParents(const std::string& path);
  static void append(std::string& out, std::uint32_t inode, std::string_view name, const Entry& entry);

  std::map<std::string, Entry> entries_;  // sorted: a folder comes before what lies in it
};

}  // namespace bough::guest
