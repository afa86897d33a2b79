// See newc.h.
#include "native/guest/initramfs/newc.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <utility>

namespace bough::guest {
namespace {

constexpr std::string_view kTrailer = "TRAILER!!!";

void pad(std::string& out) {
  while (out.size() % 4 != 0) out += '\0';
}

}  // namespace

void NewcArchive::addFolder(const std::string& path, std::uint32_t permissions) {
  addParents(path);
  entries_[path] = Entry{.mode = S_IFDIR | permissions, .major = 0, .minor = 0, .content = {}};
}

void NewcArchive::addFile(const std::string& path, std::string content, std::uint32_t permissions) {
  addParents(path);
  entries_[path] = Entry{.mode = S_IFREG | permissions, .major = 0, .minor = 0, .content = std::move(content)};
}

void NewcArchive::addCharacterDevice(const std::string& path, std::uint32_t permissions, std::uint32_t major,
                                     std::uint32_t minor) {
  addParents(path);
  entries_[path] = Entry{.mode = S_IFCHR | permissions, .major = major, .minor = minor, .content = {}};
}

void NewcArchive::addParents(const std::string& path) {
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    entries_.try_emplace(path.substr(0, end), Entry{.mode = S_IFDIR | 0755, .major = 0, .minor = 0, .content = {}});
  }
}

std::string NewcArchive::bytes() const {
  std::string out;
  std::uint32_t inode = 1;
  for (const auto& [name, entry] : entries_) append(out, inode++, name, entry);
  append(out, 0, kTrailer, Entry{});
  return out;
}

void NewcArchive::append(std::string& out, std::uint32_t inode, std::string_view name, const Entry& entry) {
  const bool folder = S_ISDIR(entry.mode);
  const std::array<std::uint32_t, 13> fields = {
      inode,
      entry.mode,
      0,  // owner
      0,  // group
      folder ? 2U : 1U,
      0,  // time
      static_cast<std::uint32_t>(entry.content.size()),
      0,  // device that it lies on
      0,
      entry.major,
      entry.minor,
      static_cast<std::uint32_t>(name.size() + 1),
      0,  // checksum: another format has one
  };
  out += "070701";
  for (const std::uint32_t field : fields) {
    std::array<char, 9> digits{};
    ::snprintf(digits.data(), digits.size(), "%08X", field);
    out += digits.data();
  }
  out += name;
  out += '\0';
  pad(out);
  out += entry.content;
  pad(out);
}

}  // namespace bough::guest
